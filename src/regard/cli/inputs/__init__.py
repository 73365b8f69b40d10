"""What goes in: the texts of `regard run`, and a look at files of data."""
