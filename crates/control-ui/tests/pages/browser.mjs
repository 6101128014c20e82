// node browser.mjs MODULES BASE SESSION SHOTS RECORDING PATH…: looks at each page at 360 px in light and at 1280 px in dark.
// Prints a line for each finding; the progress goes to the standard error.
import { createRequire } from "node:module";
import { mkdirSync, readFileSync } from "node:fs";
const [modules, base, session, shots, recording, ...paths] = process.argv.slice(2);
const require = createRequire(modules + "/");
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const VIEWS = [{ width: 360, colorScheme: "light" }, { width: 1280, colorScheme: "dark" }];
// One page takes at most so long, on a machine with other work.
const PAGE_LIMIT = 60_000;
mkdirSync(shots, { recursive: true });

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });

// The name of a page's picture. Pages that differ by identifiers alone are numbered.
const names = new Map();
for (const path of paths) {
  const generic = path.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "ID");
  const plain = generic.replace(/[^a-z]+/gi, "-").replace(/^-|-$/g, "") || "root";
  const same = [...names.values()].filter((name) => name.replace(/-\d+$/, "") === plain).length;
  names.set(path, same === 0 ? plain : `${plain}-${same + 1}`);
}

// `open` brings the page to what is looked at.
async function look(page, open, picture) {
  const timer = setTimeout(() => {
    console.log(`${picture}: takes longer than ${PAGE_LIMIT / 1000} s`);
    process.exit(1);
  }, PAGE_LIMIT);
  try {
    return await examine(page, open, picture);
  } finally {
    clearTimeout(timer);
  }
}

async function examine(page, open, picture) {
  const wrong = [];
  // The page of a reset link cannot give password managers an address: it does not know whose link it is.
  const onMessage = (message) => {
    const isExpected = /status of 4\d\d|Password forms should have/.test(message.text());
    if (!isExpected) wrong.push("console: " + message.text());
  };
  const onError = (error) => wrong.push("error: " + error);
  page.on("console", onMessage);
  page.on("pageerror", onError);
  await open();
  await page.screenshot({ path: `${shots}/${picture}.png`, fullPage: true });
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  if (overflow > 0) wrong.push(`${overflow} px too wide`);
  const small = await page.evaluate(() => [...document.querySelectorAll("main button, main .button")]
    .filter((one) => one.getBoundingClientRect().height < 32).length);
  if (small > 0) wrong.push(`${small} buttons are too small`);
  // The checker is no part of the page: it is not held to the page's policy.
  page.off("console", onMessage);
  page.off("pageerror", onError);
  await page.evaluate(axe);
  const { violations } = await page.evaluate((rules) => axe.run(document, { runOnly: rules, preload: false }), RULES);
  for (const { id, nodes } of violations) {
    const first = nodes[0];
    wrong.push(`axe: ${id} at ${first.target} (${nodes.length}): ${(first.any[0] ?? first.all[0] ?? first.none[0])?.message}`);
  }
  return wrong;
}

// Controls that Tab does not reach, or that do not show the focus.
async function walk(page) {
  const all = () => [...document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']")]
    .filter((one) => one.checkVisibility());
  const count = await page.evaluate(`(${all})().length`);
  await page.evaluate("document.activeElement.blur()");
  for (let step = 0; step <= count; step++) {
    await page.keyboard.press("Tab");
    await page.evaluate(() => {
      const own = document.activeElement;
      const isSeen = [own, own.closest(".find")].some((one) => one && getComputedStyle(one).outlineStyle !== "none");
      own.dataset.reached = isSeen ? "seen" : "unseen";
    });
  }
  const lost = await page.evaluate(`(${all})().filter((one) => one.dataset.reached !== "seen").map((one) => one.outerHTML.slice(0, 80))`);
  return lost.map((one) => `not by keyboard: ${one}`);
}
// Pages with a form, or with something to open.
const WALKED = /explain|replay|traffic|sso|policy|certificates|rotate-key|installation|orgs\/[^/]+$/;

async function lookAtAll({ width, colorScheme }) {
  const viewport = { width, height: 900 };
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
  // The second one lets the page of the code be shown; it is good for nothing else.
  for (const [name, value] of [["session", session], ["pending", "none"]])
    await context.addCookies([{ name, value, url: base }]);
  context.setDefaultTimeout(PAGE_LIMIT);
  const page = await context.newPage();
  const view = `${width}-${colorScheme}`;
  const tell = (what, wrong) => {
    console.error(`${wrong.length === 0 ? "ok" : "wrong"} ${what} ${view} ${wrong.join("; ")}`);
    for (const line of wrong) console.log(`${what} ${view}: ${line}`);
  };
  for (const path of paths) {
    // The form of a path that begins with `send:` is sent as it is.
    const open = async () => {
      await page.goto(base + path.replace("send:", ""), { waitUntil: "load" });
      if (path.startsWith("send:")) { await page.click("main form button"); await page.waitForLoadState(); }
    };
    const wrong = await look(page, open, `${names.get(path)}-${view}`);
    if (width > 1000 && WALKED.test(path)) wrong.push(...await walk(page));
    tell(path, wrong);
    if (!/\/replay/.test(path) || await page.$("#recording") === null) continue;
    // The form after it was sent: refused, then answered.
    for (const [outcome, text] of [["refused", "no request"], ["answered", recording]]) {
      const send = async () => {
        await page.goto(base + path);
        await page.fill("#recording", text);
        await page.click("main button[type=submit]");
        await page.waitForSelector(outcome === "refused" ? "#recording-fault" : "h1:text-matches('kind')");
      };
      const wrong = await look(page, send, `${names.get(path)}-${outcome}-${view}`);
      if (width > 1000) wrong.push(...await walk(page));
      tell(`${path} ${outcome}`, wrong);
    }
  }
  // A form that was typed into when its session ended, and then a session of another sign-in.
  const editor = paths.find((path) => path.endsWith("/bundles/new"));
  if (editor) {
    const lose = async () => {
      await page.goto(base + editor);
      await page.fill("#name", "spring sale");
      await context.addCookies([{ name: "session", value: "A".repeat(43), url: base }]);
      await page.click("button[value=check]");
      await page.waitForSelector("#held");
    };
    tell("ended session", await look(page, lose, `ended-session-${view}`));
    await context.addCookies([{ name: "session", value: session, url: base }]);
    const sendAgain = async () => {
      await page.click("section[aria-labelledby=held] button");
      await page.waitForSelector("h1:text-matches('earlier sign-in')");
    };
    tell("earlier sign-in", await look(page, sendAgain, `earlier-sign-in-${view}`));
    await page.click("section[aria-labelledby=held] button");
    await page.waitForSelector("h1:text-matches('no errors')");
    if (await page.inputValue("#name") !== "spring sale") console.log(`ended session ${view}: the name is lost`);
  }
  const setUp = async () => {
    await page.goto(base + "/profile/totp");
    await page.click("main button");
    await page.waitForSelector(".qr svg");
  };
  // A session without a fresh proof of identity does not get so far.
  if (!paths.some((path) => path.startsWith("send:"))) tell("QR code", await look(page, setUp, `qr-code-${view}`));
  await context.close();
}

await Promise.all(VIEWS.map(lookAtAll));
await browser.close();
