"""What `regard new` writes: files to start from. They are Python that is linted, typed and tested like the rest."""
