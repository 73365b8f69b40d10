"""What builds the documentation: pages that run, and the reference made from the package."""
