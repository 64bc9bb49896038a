// Package oracle holds tests alone: they compare the address table and Decide
// with what another egress proxy says of the same addresses.
package oracle
