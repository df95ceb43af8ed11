"""Tasks written by hand, by family. Each states its sizes for a CPU lane and for a GPU."""
