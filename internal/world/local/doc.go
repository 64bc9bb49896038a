// Package local is this machine as a world.
package local
