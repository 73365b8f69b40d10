"""Short stories in which the referent of `it` is known."""
