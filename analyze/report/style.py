"""The look and the one script of a report page: constants, so that a hash can vouch for them."""

STYLE = """
:root { color-scheme: light dark; --ink: #1d2127; --muted: #5b646e; --line: #dfe3e8;
  --page: #ffffff; --card: #f5f7f9; --code: #eef1f4; --wall: #5b646e; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e8eaed; --muted: #a3abb5; --line: #333a42; --page: #15181c; --card: #1e2329;
    --code: #262c33; }
  .still { background: #ffffff; border-radius: 6px; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.55 system-ui, -apple-system, "Segoe UI", Arial, Helvetica, sans-serif; }
main { max-width: 1010px; margin: 0 auto; padding: 36px 24px 64px; }
h1 { font-size: 17px; font-weight: 600; color: var(--muted); margin: 0 0 14px;
  overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 44px 0 10px; padding-top: 18px; border-top: 1px solid var(--line); }
p { margin: 10px 0; max-width: 78ch; }
ul { margin: 10px 0; padding-left: 20px; max-width: 78ch; }
li { margin: 3px 0; }
code { font: 0.87em/1.4 ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  background: var(--code); border-radius: 4px; padding: 1px 5px; overflow-wrap: anywhere; }
.answer { border-left: 5px solid var(--wall); padding: 2px 0 2px 18px; margin: 0 0 22px; }
.answer p { font-size: 19px; line-height: 1.45; max-width: 70ch; margin: 6px 0; }
.answer p.note { font-size: 15px; color: var(--muted); }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(124px, 1fr)); gap: 10px;
  margin: 0 0 8px; padding: 0; }
.cards div { background: var(--card); border-radius: 8px; padding: 10px 12px; }
.cards dt { font-size: 12px; color: var(--muted); line-height: 1.3; }
.cards dd { margin: 3px 0 0; font-size: 19px; font-weight: 600; white-space: nowrap;
  font-variant-numeric: tabular-nums; }
.scroll { overflow-x: auto; margin: 14px 0; }
table { border-collapse: collapse; font-size: 14px; min-width: 46%; }
th { text-align: left; font-weight: 500; color: var(--muted); font-size: 12.5px;
  vertical-align: bottom; border-bottom: 1px solid var(--muted); }
th, td { padding: 5px 14px 5px 0; }
td { border-bottom: 1px solid var(--line); vertical-align: top; }
.r { text-align: right; padding-left: 10px; }
td.r { font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 18px 0 22px; overflow-x: auto; }
figcaption { color: var(--muted); font-size: 13px; }
.still { max-width: 100%; height: auto; display: block; }
.drawn .still { display: none; }
.key { white-space: nowrap; }
.key i { display: inline-block; width: 10px; height: 10px; border-radius: 2px; margin-right: 7px; }
#vg-tooltip-element { max-width: 480px; overflow-wrap: anywhere; }
@media print { h2 { break-after: avoid; } figure, tr { break-inside: avoid; } }
"""

# Expressions are interpreted (`ast`), so the page needs no right to compile text into code.
SCRIPT = """
const data = JSON.parse(document.getElementById("charts").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
async function draw() {
  for (const [name, spec] of Object.entries(data.specs)) {
    const figure = document.getElementById("chart-" + name);
    try {
      await vegaEmbed(figure.querySelector(".live"), spec, {
        actions: false, ast: true, renderer: "svg", mode: "vega-lite",
        config: dark.matches ? data.dark : data.light,
        tooltip: { theme: dark.matches ? "dark" : "light" },
      });
      figure.classList.add("drawn");
    } catch (error) {
      console.error("chart " + name + ": " + error);
    }
  }
}
dark.addEventListener("change", draw);
draw();
"""
