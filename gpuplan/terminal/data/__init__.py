"""Tables and schemas, as data: these modules hold values and no logic."""
