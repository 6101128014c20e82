// node browser.mjs MODULES BASE SESSION SHOTS PATH…: prints what is wrong with each page, a line each, and nothing else.
// Pictures are taken without JavaScript, as the page comes from the server; axe runs with it.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
const [modules, base, session, shots, ...paths] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
mkdirSync(shots, { recursive: true });

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });

async function open(options) {
  const context = await browser.newContext(options);
  if (session) await context.addCookies([{ name: "session", value: session, url: base }]);
  return context;
}

function name(path) {
  const plain = path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "").replace(/[^a-z]+/gi, "-");
  return plain.replace(/^-|-$/g, "") || "root";
}

async function look(path, width, colorScheme) {
  const wrong = [];
  const viewport = { width, height: 900 };
  const scale = width < 500 ? 2 : 1;
  const plain = await open({ viewport, colorScheme, javaScriptEnabled: false, deviceScaleFactor: scale });
  const picture = await plain.newPage();
  await picture.goto(base + path, { waitUntil: "load" });
  await picture.screenshot({ path: `${shots}/${name(path)}-${width}-${colorScheme}.png`, fullPage: true });
  await plain.close();
  const context = await open({ viewport, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.on("console", (message) => { if (!/status of 4\d\d/.test(message.text())) wrong.push("console: " + message.text()); });
  page.on("pageerror", (error) => wrong.push("error: " + error));
  await page.goto(base + path, { waitUntil: "load" });
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (overflow > 0) wrong.push(`${overflow} px too wide`);
  const small = await page.evaluate(() => [...document.querySelectorAll("main button, main .button")]
    .filter((one) => one.getBoundingClientRect().height < 32).length);
  if (small > 0) wrong.push(`${small} buttons are too small`);
  await context.close();
  const checked = await open({ viewport, colorScheme, bypassCSP: true, reducedMotion: "reduce" });
  const tree = await checked.newPage();
  await tree.goto(base + path, { waitUntil: "load" });
  await tree.evaluate(axe);
  const { violations } = await tree.evaluate((rules) => axe.run(document, { runOnly: rules }), RULES);
  for (const { id, nodes } of violations) {
    const first = nodes[0];
    wrong.push(`axe: ${id} at ${first.target} (${nodes.length}): ${(first.any[0] ?? first.all[0] ?? first.none[0])?.message}`);
  }
  await checked.close();
  return wrong;
}

for (const path of paths)
  for (const width of [360, 1280])
    for (const scheme of ["light", "dark"])
      for (const line of await look(path, width, scheme)) console.log(`${path} ${width} ${scheme}: ${line}`);
await browser.close();
