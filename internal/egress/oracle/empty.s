// Lets the test declare a function without a body.
