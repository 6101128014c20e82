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
    else if (request.status === 401) location.reload();
  };
  request.onloadend = () => { busy = false; if (wanted) { wanted = false; refresh(); } };
  request.send();
}

function replace(page) {
  for (const old of document.querySelectorAll("[data-live][id]")) {
    const now = page.getElementById(old.id);
    // A part in use stays as it is until the focus leaves it.
    if (!now || old.isEqualNode(now) || old.contains(document.activeElement)) continue;
    old.replaceWith(document.adoptNode(now));
  }
  document.title = page.title;
}

// Says since when there is no news, if none comes.
function fresh() {
  const at = new Date();
  stale.hidden = true;
  clearTimeout(timer);
  timer = setTimeout(() => {
    const time = stale.querySelector("time");
    time.dateTime = at.toISOString();
    time.textContent = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
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

// A menu closes when the focus or a click goes elsewhere.
for (const event of ["focusin", "click"]) document.addEventListener(event, ({ target }) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(target)) menu.open = false;
});
