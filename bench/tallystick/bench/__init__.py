"""One benchmark a file, each answering one question."""
