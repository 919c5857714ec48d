// The page in viewer/dist, which the program embeds, is what viewer/src builds to.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';

const viewer = resolve(dirname(fileURLToPath(import.meta.url)), '../../viewer');
const run = (program, ...words) =>
  execFileSync(process.execPath, [join(viewer, 'node_modules', program), ...words], { cwd: viewer, stdio: 'pipe' });

test('the sources have no type errors', () => {
  run('typescript/bin/tsc', '--noEmit');
});

test('the committed page is up to date (npm run build in viewer/ makes it so)', () => {
  const folder = mkdtempSync(join(tmpdir(), 'placewright-build-'));
  try {
    run('vite/bin/vite.js', 'build', '--outDir', folder, '--emptyOutDir');
    const built = readFileSync(join(folder, 'page.html'), 'utf8');
    const committed = readFileSync(join(viewer, 'dist/page.html'), 'utf8');
    assert.ok(built === committed, 'viewer/dist/page.html differs from what the sources build to');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('the lock file names no registry', () => {
  assert.doesNotMatch(readFileSync(join(viewer, 'package-lock.json'), 'utf8'), /"resolved"/);
});
