// What the tests of the report page share: the program that makes pages, and a browser that opens
// them.

import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { after, before } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const program = process.env.PLACEWRIGHT_PROGRAM ?? join(root, 'build/placewright');
const { chromium } = createRequire(join(root, 'viewer/package.json'))('playwright-core');
const folder = mkdtempSync(join(tmpdir(), 'placewright-page-'));
export const file = (name) => join(folder, name);
export const placewright = (...words) => execFileSync(program, words, { encoding: 'utf8' });

export function report(name, ...plans) {
  placewright('report', ...plans, '-o', file(name), '--quiet');
  return file(name);
}

let browser;

before(async () => {
  browser = await chromium.launchPersistentContext(mkdtempSync(join(folder, 'profile-')), {
    executablePath: ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find(existsSync),
    headless: true,
    viewport: { width: 1440, height: 900 },
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
           '--disable-component-update', '--disable-sync'],
  });
});

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

// Keeps what the page writes on its canvases since the last wipe, by canvas, in the drawing's
// coordinates.
function recordTexts() {
  window.written = {};
  const { fillText, fillRect } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (shown, x, y, ...rest) {
    (window.written[this.canvas.id] ??= []).push({ shown, x, y });
    return fillText.call(this, shown, x, y, ...rest);
  };
  CanvasRenderingContext2D.prototype.fillRect = function (x, y, width, height) {
    if (x === 0 && y === 0 && width > 100) window.written[this.canvas.id] = [];
    return fillRect.call(this, x, y, width, height);
  };
}

// The page, and whatever goes wrong on it: errors, messages, requests for anything but the page
// itself.
export async function open(path, options = {}) {
  const page = await browser.newPage();
  if (options.size) await page.setViewportSize(options.size);
  await page.emulateMedia({ colorScheme: 'light' });
  await page.addInitScript(recordTexts);
  const faults = [];
  page.on('pageerror', (error) => faults.push(String(error)));
  page.on('console', (message) => { if (message.type() !== 'log') faults.push(message.text()); });
  page.on('request', (request) => {
    if (request.url().split('#')[0] !== String(pathToFileURL(path))) faults.push(`asks for ${request.url()}`);
  });
  await page.goto(String(pathToFileURL(path)) + (options.link ?? ''));
  await page.waitForSelector('html[data-ready]', { timeout: 60000 });
  return { page, faults };
}

export async function find(page, name) {
  await page.keyboard.press('Escape');
  await page.keyboard.press('/');
  await page.keyboard.insertText(name);
  await page.keyboard.press('Enter');
}

export const text = (page, selector) => page.textContent(selector);

// The texts of the last drawing of a canvas: { shown, x, y }.
export async function written(page, canvas) {
  await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
  return page.evaluate((id) => window.written[id] ?? [], canvas);
}

// The tip over the middle of a lane's height, some way along it.
export async function tipAt(page, along, y) {
  const lane = await page.locator('#timeline').boundingBox();
  await page.mouse.move(lane.x + 132 + along * (lane.width - 132 - 14), lane.y + y);
  return (await page.locator('.tip').isVisible()) ? text(page, '.tip') : '';
}
