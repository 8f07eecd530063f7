"""Where documents come from: installed packages, files, data sets."""
