"""An oracle of steps, kept apart from `gpuplan.changes`: it reads `out/` trees and knows what clusters make of them."""
