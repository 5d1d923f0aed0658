"""Changes: what the step from one plan to another disturbs, in classes of fixed meaning."""
