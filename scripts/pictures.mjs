// Makes the pictures of the docs anew, from plans that the program makes:  node scripts/pictures.mjs
// Needs the built program, Chromium, and the packages of viewer/ (scripts/setup tests).
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "../viewer/node_modules/playwright-core/index.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "pictures-"));
const placewright = (...words) => execFileSync(join(root, "build/placewright"), words, { cwd: folder, stdio: "inherit" });

const problem = join(root, "examples/moirai/GoogLeNet.json");
for (const planner of ["decompose", "single"]) {
  placewright("plan", problem, "--planner", planner, "--quiet", "-o", `${planner}.json`);
}
placewright("report", "decompose.json", "single.json", "-o", "report.html");

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
for (const [colorScheme, name] of [["light", "report.png"], ["dark", "report-dark.png"]]) {
  const page = await browser.newPage({ viewport: { width: 1200, height: 1260 }, colorScheme });
  await page.goto(`file://${folder}/report.html`);
  await page.waitForSelector("svg");
  await page.waitForTimeout(1000);
  await page.screenshot({ path: join(root, "docs/images", name) });
}
await browser.close();
rmSync(folder, { recursive: true });
