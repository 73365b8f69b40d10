"""Images: decode the user's files safely, preprocess them for a model."""
