"""From demand to layouts, pools and nodes, with a bound that proves how few can do."""
