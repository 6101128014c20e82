// Keeps the parts of a page that are marked `data-live` as the server has them. Without this file a page is
// as complete, and reloads itself. No HTML is made from text here, so Trusted Types may stay enforced: the
// browser parses the page itself, as a document that runs nothing.
const source = document.body.dataset.events;
const stale = document.querySelector(".stale");
const STALE_MILLIS = 40_000;
let events, timer, wanted = false, busy = false;

function refresh() {
  if (busy) { wanted = true; return; }
  busy = true;
  const request = new XMLHttpRequest();
  request.open("GET", location.href);
  request.setRequestHeader("X-Live", "1");
  request.responseType = "document";
  request.onload = () => {
    if (request.status === 200 && request.response) { replace(request.response); fresh(); }
    else if (request.status === 401 && !isEdited()) location.reload();
  };
  request.onloadend = () => { busy = false; if (wanted) { wanted = false; refresh(); } };
  request.send();
}

// The session has ended: a page with typed text stays, and its form says so when it is sent.
function isEdited() {
  const fields = [...document.querySelectorAll("main :is(input, textarea):not([type=hidden])")];
  return fields.some((field) => field.value !== field.defaultValue);
}

function replace(page) {
  // The note of the form before is true of the page as it was then.
  if (heading(page) !== heading(document)) document.querySelector(".note.ok")?.remove();
  // A part in use stays as it is until the focus leaves it.
  const isUsed = (part) => part.contains(document.activeElement);
  for (const old of document.querySelectorAll("[data-live][id]"))
    if (!page.getElementById(old.id) && !isUsed(old)) old.remove();
  for (const now of page.querySelectorAll("[data-live][id]")) {
    const old = document.getElementById(now.id);
    if (!old) insert(document.importNode(now, true), now);
    else if (!old.isEqualNode(now) && !isUsed(old)) old.replaceWith(document.importNode(now, true));
  }
  document.title = page.title;
}

function heading(page) { return page.querySelector("h1")?.textContent; }

// A part that the page did not have goes behind the nearest part in front of it. Every live page begins with one.
function insert(part, now) {
  let before = now;
  do before = before.previousElementSibling;
  while (before && !(before.id && document.getElementById(before.id)));
  if (before) document.getElementById(before.id).after(part);
}

// Says since when there is no news, if none comes.
function fresh() {
  const at = new Date();
  stale.hidden = true;
  clearTimeout(timer);
  timer = setTimeout(() => {
    const time = stale.querySelector("time");
    time.dateTime = at.toISOString();
    time.textContent = `${time.dateTime.slice(11, 16)} UTC`;
    stale.hidden = document.hidden;
  }, STALE_MILLIS);
}

// A browser has six connections to a server of HTTP/1.1, for all its tabs: hidden ones give theirs back.
function follow() {
  if (document.hidden) { events?.close(); events = undefined; return; }
  if (events) return;
  events = new EventSource(source);
  events.onmessage = refresh;
  // After an interruption the page is behind.
  events.onerror = () => { events.onopen = refresh; };
}

if (source) { document.addEventListener("visibilitychange", () => { follow(); if (!document.hidden) refresh(); }); fresh(); follow(); }

// Secrets and commands can be copied with one click. A browser offers that over TLS and on loopback only.
for (const text of navigator.clipboard ? document.querySelectorAll("pre.command:not([data-live] *)") : []) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "Copy" });
  button.onclick = async () => { await navigator.clipboard.writeText(text.textContent); button.textContent = "Copied"; };
  text.after(button);
}

// A menu closes when the focus or a click goes elsewhere.
for (const event of ["focusin", "click"]) document.addEventListener(event, ({ target }) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(target)) menu.open = false;
});
