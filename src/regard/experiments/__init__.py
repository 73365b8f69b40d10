"""What is measured across models: laws, cost, and the comparison of the five translators."""
