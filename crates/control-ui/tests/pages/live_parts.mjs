// node live_parts.mjs MODULES URL SESSION SELECTOR [BUTTON]: keeps a page open, and prints `absent` or `present` whenever
// SELECTOR begins to match nothing or something of it. Presses BUTTON after the first `absent`, ends after the second.
import { createRequire } from "node:module";
const [modules, url, session, selector, button] = process.argv.slice(2);
const { chromium } = createRequire(modules + "/")("playwright-core");
const LIMIT = 60_000;

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext();
context.setDefaultTimeout(LIMIT);
// For all paths, that of the events too.
await context.addCookies([{ name: "session", value: session, url: new URL(url).origin }]);
const page = await context.newPage();
page.on("pageerror", (error) => console.log("error: " + error));
await page.goto(url, { waitUntil: "load" });
let pressed = false;
for (const state of ["absent", "present", "absent"]) {
  await page.waitForSelector(selector, { state: state === "present" ? "visible" : "detached" });
  console.log(state);
  if (button && state === "absent" && !pressed) { pressed = true; await page.click(`main button:text-is("${button}")`); }
}
await browser.close();
