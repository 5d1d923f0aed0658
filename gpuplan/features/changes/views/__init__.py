"""From values to text, as far as this feature has them."""
