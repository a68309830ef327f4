"use strict";

// Each chart's legend carries the values of every bin; the one under the pointer is shown in the legend.
function readable(figure) {
  const places = figure.dataset.x.split(" ").map(Number);
  const items = [...figure.querySelectorAll(".legend li")].map((item) => ({
    output: item.querySelector("output"),
    values: item.dataset.values.split("|"),
  }));
  const plot = figure.querySelector(".plot");
  const cross = figure.querySelector(".cross");
  let current = null;

  function show(index) {
    current = Math.max(0, Math.min(places.length - 1, index));
    const x = `${100 * places[current]}%`;
    cross.setAttribute("x1", x);
    cross.setAttribute("x2", x);
    items.forEach((item) => { item.output.textContent = item.values[current]; });
    figure.classList.add("reading");
    plot.setAttribute("aria-valuenow", current);
    plot.setAttribute("aria-valuetext", figure.querySelector(".legend").innerText.replace(/\s+/g, " "));
  }

  function hide() {
    items.forEach((item) => { item.output.textContent = ""; });
    figure.classList.remove("reading");
  }

  function nearest(place) {
    let best = 0;
    places.forEach((x, index) => { if (Math.abs(x - place) < Math.abs(places[best] - place)) best = index; });
    return best;
  }

  function follow(event) {
    const box = plot.getBoundingClientRect();
    show(nearest((event.clientX - box.left) / box.width));
  }

  const steps = { ArrowLeft: -1, ArrowRight: 1, PageDown: -10, PageUp: 10, Home: -Infinity, End: Infinity };

  plot.addEventListener("pointermove", follow);
  plot.addEventListener("pointerdown", follow);
  plot.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    if (!(event.key in steps)) return;
    event.preventDefault();
    show(current === null ? 0 : current + steps[event.key]);
  });

  // With a script at hand the picture becomes something to move along, for a keyboard too.
  plot.setAttribute("role", "slider");
  plot.setAttribute("tabindex", "0");
  plot.setAttribute("aria-valuemin", "0");
  plot.setAttribute("aria-valuemax", places.length - 1);
  plot.setAttribute("aria-valuenow", "0");
}

// A link to a folded trial opens it.
function unfold() {
  const target = document.getElementById(location.hash.slice(1));
  if (!target || !target.matches("details")) return;
  target.open = true;
  target.scrollIntoView();
}

document.querySelectorAll(".chart").forEach(readable);
addEventListener("hashchange", unfold);
unfold();
