"""What the command line says about itself: `paribus VERB --help` and `paribus explain`."""
