// Adds a field to the list of rules that hides rows without the typed words. Without scripts the list is whole.
document.addEventListener("DOMContentLoaded", () => {
  const title = document.querySelector(".md-content h1");
  if (!title || title.firstChild.textContent.trim() !== "Rules") return;
  const parts = [];
  for (const found of document.querySelectorAll(".md-content h2, .md-content table")) {
    if (found.tagName === "H2") parts.push({ heading: found, rows: [], table: null });
    else if (parts.length > 0) {
      const part = parts[parts.length - 1];
      part.table = found;
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
  parts[0].heading.before(label);
  const show = (element, shown) => element && (element.style.display = shown ? "" : "none");
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    let left = 0;
    for (const part of parts) {
      let inside = 0;
      for (const row of part.rows) {
        const text = row.textContent.toLowerCase();
        const shown = words.every((word) => text.includes(word));
        show(row, shown);
        inside += shown;
      }
      show(part.heading, inside > 0);
      show(part.table, inside > 0);
      left += inside;
    }
    count.textContent = words.length > 0 ? `${left} found` : "";
  });
});
