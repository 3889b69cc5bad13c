"""Draws a plot as PNG and SVG, where matplotlib is installed: the extra ``bench`` brings it."""

from pathlib import Path

from tallystick.bench.frame import Plot

MARKS = ("o", "s", "^", "D", "v")
MISSING = "no plot: matplotlib is not installed, and pip install 'tallystick[bench]' brings it; the figures are written"


def draw(plot: Plot, path: Path) -> list[str]:
    """Draw to ``path`` with the suffixes ``.png`` and ``.svg``; return what is to be said of that, a line each."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
        from matplotlib.ticker import FixedLocator, NullLocator, ScalarFormatter
    except ImportError:
        return [MISSING]
    figure = Figure(figsize=(5.6, 3.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for mark, (name, points) in zip(MARKS, plot.lines.items(), strict=False):
        across, up = zip(*points, strict=True)
        axes.plot(across, up, marker=mark, label=name)
        for x, y in points:
            axes.annotate(f"{y:g}", (x, y), textcoords="offset points", xytext=(0, 6), ha="center", fontsize=8)
    if plot.logarithmic:
        axes.set_xscale("log", base=2)
        axes.set_yscale("log", base=2)
        axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_major_locator(FixedLocator(sorted({x for points in plot.lines.values() for x, _ in points})))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.set(title=plot.title, xlabel=plot.x, ylabel=plot.y)
    axes.margins(y=0.12)
    axes.grid(visible=True, alpha=0.3)
    axes.legend(frameon=False)
    written = []
    for suffix in (".png", ".svg"):
        figure.savefig(path.with_suffix(suffix), dpi=150)
        written.append(f"written: {path.with_suffix(suffix)}")
    return written
