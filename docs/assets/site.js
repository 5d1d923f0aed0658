// Two additions to the pages; without scripts all content is there, too.
document.addEventListener("DOMContentLoaded", () => {
  // Wide tables scroll in their own frames: a keyboard reaches these as it reaches long lines of code.
  for (const frame of document.querySelectorAll(".md-typeset__scrollwrap")) {
    frame.tabIndex = 0;
    frame.setAttribute("role", "region");
    frame.setAttribute("aria-label", "Table");
  }
  const title = document.querySelector(".md-content h1");
  if (title && title.firstChild.textContent.trim() === "Rules") addFilter();
});

// Adds a field to the list of rules that hides rows without the typed words.
function addFilter() {
  const parts = [];
  for (const found of document.querySelectorAll(".md-content h2, .md-content table")) {
    if (found.tagName === "H2") {
      const contents = [...document.querySelectorAll(`.md-nav--secondary a[href="#${found.id}"]`)];
      parts.push({ shown: [found, ...contents.map((link) => link.closest("li"))], rows: [] });
    } else if (parts.length > 0) {
      const part = parts[parts.length - 1];
      part.shown.push(found.closest(".md-typeset__scrollwrap") ?? found);
      part.rows = [...found.tBodies[0].rows];
    }
  }
  const label = document.createElement("label");
  label.className = "rows-filter";
  const field = document.createElement("input");
  field.type = "search";
  const count = document.createElement("span");
  count.setAttribute("role", "status");
  label.append("Show rules with ", field, " ", count);
  parts[0].shown[0].before(label);
  const show = (element, isShown) => element && (element.style.display = isShown ? "" : "none");
  const filter = () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const part of parts) {
      let inside = 0;
      for (const row of part.rows) {
        const text = row.textContent.toLowerCase();
        const isShown = words.every((word) => text.includes(word));
        show(row, isShown);
        inside += isShown;
      }
      for (const element of part.shown) show(element, inside > 0);
      left += inside;
    }
    count.textContent = words.length === 0 ? "" : left > 0 ? `${left} found` : "No rule has all of these words.";
  };
  field.addEventListener("input", filter);
  field.value = new URLSearchParams(window.location.search).get("q") ?? "";
  filter();
}
