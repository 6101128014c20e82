// node screenshots.mjs MODULES URL SESSION FILE HEADING: a picture of one page, whose heading must be HEADING.
import { createRequire } from "node:module";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
const [modules, url, session, file, heading] = process.argv.slice(2);
const { chromium } = createRequire(modules + "/")("playwright-core");
const SIZE = { width: 960, height: 640 };
// The page without its navigation, down to here: pictures stay small.
const BOTTOM = 540;
const LIMIT = 60_000;
mkdirSync(dirname(file), { recursive: true });

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
const context = await browser.newContext({ viewport: SIZE, colorScheme: "light", reducedMotion: "reduce" });
context.setDefaultTimeout(LIMIT);
await context.addCookies([{ name: "session", value: session, url }]);
const page = await context.newPage();
await page.goto(url, { waitUntil: "load" });
const shown = await page.textContent("h1");
if (shown !== heading) console.log(`the heading is: ${shown}`);
await page.evaluate(() => document.fonts.ready);
const main = await page.locator("main").boundingBox();
const clip = { x: main.x, y: main.y, width: main.width, height: BOTTOM - main.y };
await page.screenshot({ path: file, clip });
await browser.close();
