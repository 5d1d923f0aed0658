"""Laws: statements that hold for every platform, held against many of them."""
