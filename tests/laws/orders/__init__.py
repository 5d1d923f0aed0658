"""An oracle of steps, apart from `features.changes`: it reads `out/` trees and knows what clusters make of them."""
