"""From values to text: each view is a function of what is to be shown, and decides nothing."""
