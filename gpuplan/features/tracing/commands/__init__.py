"""Commands, each a module that is loaded when it is run."""
