"use strict";
(() => {
  const index = JSON.parse(document.getElementById("index").textContent);
  const main = document.getElementById("answers");
  const parsed = new Promise((done) => {
    if (document.readyState !== "loading") done();
    else document.addEventListener("DOMContentLoaded", done, { once: true });
  });
  let chosen = null; // numbers of the answers shown; null for all
  let page = 0;
  let latest = 0;
  let unpacked = { number: -1, answers: [] };

  const total = () => (chosen === null ? index.statuses.length : chosen.length);
  const pages = () => Math.max(1, Math.ceil(total() / index.page));

  async function block(number) {
    if (unpacked.number === number) return unpacked.answers;
    if (!document.getElementById(`block-${number}`)) await parsed;
    const packed = document.getElementById(`block-${number}`).textContent;
    const bytes = Uint8Array.from(atob(packed), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    unpacked = { number, answers: await new Response(stream).json() };
    return unpacked.answers;
  }

  async function show() {
    const turn = ++latest;
    const shown = [];
    const end = Math.min(total(), (page + 1) * index.page);
    for (let at = page * index.page; at < end; at++) {
      const number = chosen === null ? at : chosen[at];
      const answers = await block(Math.floor(number / index.block));
      if (turn !== latest) return;
      shown.push(answers[number % index.block]);
    }
    main.innerHTML = shown.join("");
    document.getElementById("where").textContent =
      `Page ${page + 1} of ${pages()}, ${total()} answers`;
  }

  function filter(button) {
    for (const other of document.querySelectorAll("[data-outcome]"))
      other.setAttribute("aria-pressed", String(other === button));
    const outcome = button.dataset.outcome;
    chosen = null;
    if (outcome !== "") {
      chosen = [];
      for (let at = 0; at < index.statuses.length; at++)
        if (index.statuses[at] === outcome) chosen.push(at);
    }
    page = 0;
    show();
  }

  function turn(where) {
    const target = { first: 0, previous: page - 1, next: page + 1, last: pages() - 1 }[where];
    page = Math.min(Math.max(target, 0), pages() - 1);
    show();
    main.scrollIntoView();
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.dataset.turn) turn(button.dataset.turn);
    else filter(button);
  });
  for (const id of ["filters", "pager"]) document.getElementById(id).hidden = false;
  document.getElementById("where").textContent =
    `Page 1 of ${pages()}, ${total()} answers`;
})();
