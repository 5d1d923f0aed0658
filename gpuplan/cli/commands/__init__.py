"""The commands that ask the compiler, each a module that is loaded when it is run."""
