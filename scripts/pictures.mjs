// Makes the pictures of the docs anew, from plans that the program makes:
//   node scripts/pictures.mjs [--run]
// --run measures as well, and makes the picture of a real run; it needs an idle machine of two
// cores. Needs the built program, Chromium, and the packages of viewer/ (scripts/setup tests).
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "../viewer/node_modules/playwright-core/index.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "pictures-"));
const placewright = (...words) => {
  const options = { cwd: folder, stdio: "inherit" };
  execFileSync(join(root, "build/placewright"), words, options);
};

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
async function picture(name, report, height, part, colorScheme = "light") {
  const page = await browser.newPage({ viewport: { width: 1200, height }, colorScheme });
  await page.goto(`file://${folder}/${report}`);
  await page.waitForSelector("#timeline-section svg, #timeline-section canvas");
  await page.waitForTimeout(1000);
  const shown = part ? page.locator(part) : page;
  await shown.screenshot({ path: join(root, "docs/images", name) });
  await page.close();
}

const problem = join(root, "examples/moirai/GoogLeNet.json");
for (const planner of ["decompose", "single"]) {
  placewright("plan", problem, "--planner", planner, "--quiet", "-o", `${planner}.json`);
}
placewright("report", "decompose.json", "single.json", "-o", "report.html");
await picture("report.png", "report.html", 1260);
await picture("report-dark.png", "report.html", 1260, "", "dark");

const shape = ["--ops", "40", "--shared-cores", "4", "--seed", "2", "--quiet"];
placewright("generate", "inception", ...shape, "-o", "cores.json");
placewright("plan", "cores.json", "--time-limit", "5s", "--quiet", "-o", "sets.json");
placewright("report", "sets.json", "-o", "sets.html");
await picture("core-sets.png", "sets.html", 900, "#timeline-section");

if (process.argv.includes("--run")) {
  placewright("zoo", "make", "inceptionv3", "--quiet");
  const devices = ["--device", "cpu:0", "--device", "cpu:1"];
  placewright("profile", "inceptionv3.xml", ...devices, "--quiet", "-o", "problem.json");
  placewright("plan", "problem.json", "--quiet", "-o", "plan.json");
  placewright("run", "plan.json", "--no-baselines", "--quiet", "-o", "run.json");
  placewright("report", "plan.json", "--run", "run.json", "-o", "run.html");
  await picture("measured.png", "run.html", 900, "#timeline-section");
}
await browser.close();
rmSync(folder, { recursive: true });
