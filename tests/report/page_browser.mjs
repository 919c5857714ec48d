// Drives the report page in Chromium as a reader would.
//
//   PLACEWRIGHT_PROGRAM=build/placewright node --test tests/report/page_browser.mjs
//
// Times and frame rates are printed, not asserted: they depend on the machine.

import assert from 'node:assert/strict';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { file, find, open, placewright, report, root, text, tipAt } from './page_driver.mjs';

// What 'placewright run -o' would write if everything took twice as long as planned: one segment
// for each op of a schedule, and for each stage of a pipeline (two samples).
function runOf(plan, problem, quality = 'valid') {
  const { value, unit, objective, schedule, stages = [] } = JSON.parse(readFileSync(plan, 'utf8'));
  const scale = { none: 1, ms: 1, us: 1e-3, s: 1e3 }[unit];
  const measured = (time) => ({ valid: quality === 'valid', median: 2 * time * scale, low: 1.9 * time * scale,
    high: (quality === 'unsteady' ? 3.2 : 2.2) * time * scale, kept: 40, rejected: quality === 'disturbed' ? 60 : 3 });
  const parts = schedule ? schedule.ops.map(({ op, device, start, end }) => ({ ops: [op], device, start, load: end - start }))
    : stages.map(({ devices, ops, load }, i) => ({ ops, device: devices[0], start: i * value, load }));
  return {
    placewright: 'run', version: 1, objective, unit: 'ms', predicted: value * scale, measured: measured(value), interrupted: false, models: [],
    devices: JSON.parse(placewright('info', problem, '--json')).devices.map(({ name }) => ({ name, busy: 0 })),
    segments: parts.map(({ ops, device, load }) => ({ device, ops: ops.length, first_op: ops[0], last_op: ops[ops.length - 1], predicted: load * scale, measured: measured(load) })),
    timeline: parts.flatMap(({ device, start, load }, i) => (schedule ? [0] : [7, 8]).map((sample, later) => (
      { device, segment: i + 1, sample, start: 2 * scale * (start + later * value), end: 2 * scale * (start + later * value + load) }))),
    baselines: [{ name: '2 threads', latency: measured(1.5 * value), per_sample: measured(3 * value) }],
    outputs: { equal: true, largest_difference: 0 },
  };
}

const EXAMPLE = join(root, 'examples/moirai/example-1.json');
const HOSTILE = ['</script><img src=x onerror="document.title=\'broken\'">', '<!-- <script>', '"quotes" \'and\' `ticks` ${x}',
                 'two\nlines\tand a tab', 'Слой 机器学习 طبقة 🚀', 'long' + 'x'.repeat(10000)];

const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
const colourAt = (page, x, y) => page.evaluate(([px, py]) => {
  const canvas = document.getElementById('graph');
  const ratio = canvas.width / canvas.clientWidth;
  return [...canvas.getContext('2d').getImageData(px * ratio, py * ratio, 1, 1).data].slice(0, 3);
}, [x, y]);

test('a small plan: search, timeline, keyboard, details', async () => {
  placewright('plan', EXAMPLE, '--planner', 'heft', '-o', file('heft.json'), '--quiet');
  const { page, faults } = await open(report('small.html', file('heft.json')));
  const value = JSON.parse(readFileSync(file('heft.json'), 'utf8')).value;
  assert.match(await text(page, '#headline'), new RegExp(String(value)));
  assert.match(await text(page, '#graph-summary'), /14 ops, 19 edges/);

  await find(page, '11');
  assert.match(await text(page, '#details h3'), /^11$/);
  assert.match(await text(page, '#timeline-status'), /^11 on d\d, /);
  assert.match(await text(page, '#details'), /Why here/);

  // A click in the timeline selects in the graph: what is first on the first device.
  const lane = await page.locator('#timeline').boundingBox();
  await page.mouse.click(lane.x + 150, lane.y + 40);
  const first = (await text(page, '#timeline-status')).split(' ')[0];
  assert.equal(await text(page, '#details h3'), first);

  // Arrows walk along edges, Escape lets go.
  await find(page, '14');
  await page.focus('#graph');
  await page.keyboard.press('ArrowUp');
  assert.equal(await text(page, '#details h3'), '11');
  await page.keyboard.press('Escape');
  assert.ok(await page.locator('#details').isHidden(), 'nothing is selected');
  assert.deepEqual(faults, []);
  await page.close();
});

test('several plans: switching, differences, dark mode', async () => {
  placewright('plan', EXAMPLE, '--planner', 'etf', '-o', file('etf.json'), '--quiet');
  const { page, faults } = await open(report('two.html', file('heft.json'), file('etf.json')));
  assert.match(await text(page, '#headline'), /found by heft/);
  await page.selectOption('#plan', { label: 'etf' });
  assert.match(await text(page, '#headline'), /found by etf/);
  await page.selectOption('#beside', { label: 'heft' });
  const placements = ['heft', 'etf'].map((name) => JSON.parse(readFileSync(file(`${name}.json`), 'utf8')).placement);
  const moved = Object.keys(placements[0]).filter((op) => placements[0][op] !== placements[1][op]).length;
  assert.match(await text(page, '.difference'), new RegExp(`${moved} ops? of 14`));

  assert.match(await background(page), /rgb\(24\d, 24\d, 24\d\)/);
  await page.click('#theme');
  assert.match(await background(page), /rgb\(1\d, 2\d, 2\d\)/);
  await page.waitForTimeout(200);
  const canvas = await colourAt(page, 4, 4);
  assert.ok(canvas[0] < 60, `the canvas is dark as well: ${canvas}`);
  assert.deepEqual(faults, []);
  await page.close();
});

test('groups fold and unfold', async () => {
  const problem = join(root, 'examples/moirai/inceptionv4.json');
  placewright('plan', problem, '--planner', 'heft', '-o', file('inception.json'), '--quiet');
  const { page, faults } = await open(report('inception.html', file('inception.json')));
  const folded = async () => Number(/(\d+) folded group/.exec(await text(page, '#graph-summary'))?.[1] ?? 0);
  const all = await folded();
  assert.ok(all > 4, `${all} folded groups`);
  await find(page, '505');
  assert.equal(await text(page, '#details h3'), '505');
  assert.equal(await folded(), all - 1, 'finding an op unfolds its group');
  await page.focus('#graph');
  await page.keyboard.press('Enter');
  assert.equal(await folded(), all, 'Enter folds it again');
  await page.click('#details button:has-text("Unfold")');
  assert.equal(await folded(), all - 1);
  await page.click('#unfold-all');
  assert.equal(await folded(), 0);
  await page.click('#fold-all');
  assert.equal(await folded(), all);
  await page.selectOption('#grouping', { label: 'no groups' });
  assert.equal(await folded(), 0);
  assert.deepEqual(faults, []);
  await page.close();
});

test('pipelines and calls', async () => {
  const throughput = join(root, 'examples/msr/throughput/LayerGraphs/bert24_inference.json');
  placewright('plan', throughput, '--objective', 'throughput', '--planner', 'ideals-linear', '-o', file('stages.json'), '--quiet');
  const latency = join(root, 'examples/msr/latency/LayerGraphs/resnet50_inference.json');
  placewright('plan', latency, '--objective', 'call-latency', '--planner', 'topo', '-o', file('calls.json'), '--quiet');
  for (const [plan, grouping] of [['stages', 'stages'], ['calls', 'calls']]) {
    const { page, faults } = await open(report(`${plan}.html`, file(`${plan}.json`)));
    await page.selectOption('#grouping', { label: grouping });
    await page.click('#fold-all');
    assert.match(await text(page, '#graph-summary'), /folded group/);
    assert.equal(await page.locator('#timeline').count(), 1);
    assert.deepEqual(faults, []);
    await page.close();
  }
});

test('a real run beside a schedule', async () => {
  const run = runOf(file('heft.json'), EXAMPLE);
  writeFileSync(file('run.json'), JSON.stringify(run));
  const { page, faults } = await open(report('run.html', file('etf.json'), file('heft.json'), '--run', file('run.json')));
  assert.equal(await page.locator('#measured').count(), 0, 'the run is the second plan’s');
  assert.match(await text(page, '#run'), /not run/);
  const planned = (await page.locator('#timeline').boundingBox()).height;
  await page.selectOption('#plan', { label: 'heft' });
  assert.match(await text(page, '#measured'), /predicted 37 as stated, measured 74 as stated \(off by −50\.0 %\).*outputs equal/);
  assert.match(await text(page, '#baselines'), /2 threads111.*1\.50×/);
  assert.equal(await page.locator('#segments tbody tr').count(), 14);

  // Three devices: each has a second lane now, and time goes on to the end of the run.
  await page.locator('#timeline').scrollIntoViewIfNeeded();
  assert.ok((await page.locator('#timeline').boundingBox()).height > planned, 'there are more lanes');
  const op = run.timeline.filter(({ device }) => device === 'd0').sort((a, b) => b.end - b.start - (a.end - a.start))[0];
  const segment = run.segments[op.segment - 1];
  const tip = await tipAt(page, (op.start + op.end) / 2 / 74, 26 + 26 + 3 + 11);
  assert.ok(tip.startsWith(`segment ${op.segment}on d0${segment.first_op}, measured; predicted ${segment.predicted} as stated`), tip);
  assert.ok(tip.endsWith(`${op.start} to ${op.end} as stated (${op.end - op.start} as stated)`), tip);
  const lane = await page.locator('#timeline').boundingBox();
  await page.mouse.click(lane.x + 132 + ((op.start + op.end) / 2 / 74) * (lane.width - 146), lane.y + 26 + 26 + 3 + 11);
  assert.equal(await text(page, '#details h3'), segment.first_op);
  assert.deepEqual(faults, []);
  await page.close();
});

test('a real run beside a pipeline, and those that are not valid', async () => {
  const problem = join(root, 'examples/msr/throughput/LayerGraphs/bert24_inference.json');
  const said = { valid: /measured .* \(off by −50\.0 %\)/, disturbed: /not valid.*other work took the cores in 60 of 100/,
    unsteady: /not valid.*the blocks of samples differ too much, [\d.]+ as stated to [\d.]+ as stated;/ };
  const beside = { valid: /3\.00×/, disturbed: /, disturbednot valid–/, unsteady: /, unsteadynot valid–/ };
  for (const quality of Object.keys(said)) {
    writeFileSync(file('run.json'), JSON.stringify(runOf(file('stages.json'), problem, quality)));
    const { page, faults } = await open(report('run.html', file('stages.json'), '--run', file('run.json')));
    assert.match(await text(page, '#measured'), said[quality]);
    assert.match(await text(page, '#baselines'), beside[quality]);
    await page.locator('#timeline').scrollIntoViewIfNeeded();
    // Both lanes of the first stage's device begin with the first sample of the stretch.
    const tips = new Set();
    for (let y = 30; y < (await page.locator('#timeline').boundingBox()).height; y += 8) tips.add((await tipAt(page, 0.002, y)).slice(0, 19));
    assert.deepEqual([...tips].filter(Boolean).map((tip) => tip.slice(0, 9)), ['sample 7o', 'sample 7,']);
    assert.deepEqual(faults, []);
    await page.close();
  }
});

test('names are text, whatever is in them', async () => {
  const shape = JSON.parse(placewright('generate', 'chain', '--ops', '6', '--devices', '2', '-o', '-'));
  const renamed = new Map(shape.ops.map((op, i) => [op.name, HOSTILE[i]]));
  shape.name = '<b>bold</b>';
  shape.ops = shape.ops.map((op) => ({ ...op, name: renamed.get(op.name), type: '<u>type</u>' }));
  const rename = (end) => (typeof end === 'number' ? end : renamed.get(end) ?? end);
  shape.tensors = shape.tensors.map((tensor) => ({ ...tensor, from: rename(tensor.from), to: tensor.to.map(rename) }));
  writeFileSync(file('hostile.json'), JSON.stringify(shape));
  placewright('plan', file('hostile.json'), '--planner', 'heft', '-o', file('hostile-plan.json'), '--quiet');
  const { page, faults } = await open(report('hostile.html', file('hostile-plan.json')));
  assert.equal(await text(page, 'h1'), '<b>bold</b>');
  for (const name of HOSTILE) {
    await find(page, name.slice(0, 30).split('\n')[0]);
    assert.equal(await text(page, '#details h3'), name);
  }
  assert.equal(await page.locator('img, b, i b, u').count(), 0);
  assert.notEqual(await page.title(), 'broken');
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
  assert.deepEqual(faults, []);
  await page.close();
});

// Frames a second while the mouse drags the canvas about for two seconds.
async function panRate(page, selector) {
  const box = await page.locator(selector).boundingBox();
  await page.evaluate(() => {
    window.frames_seen = 0;
    const count = () => {
      ++window.frames_seen;
      window.counting = requestAnimationFrame(count);
    };
    count();
  });
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.mouse.down();
  const start = Date.now();
  const before = await page.evaluate(() => window.frames_seen);
  for (let step = 0; Date.now() - start < 2000; ++step) {
    await page.mouse.move(box.x + box.width / 2 + 160 * Math.sin(step / 9), box.y + box.height / 2 + 90 * Math.cos(step / 7));
  }
  const frames = (await page.evaluate(() => window.frames_seen)) - before;
  const seconds = (Date.now() - start) / 1000;
  await page.mouse.up();
  await page.evaluate(() => cancelAnimationFrame(window.counting));
  return frames / seconds;
}

test('five thousand ops', async () => {
  placewright('generate', 'layered', '--ops', '5000', '--devices', '4', '--seed', '7', '-o', file('big.json'), '--quiet');
  placewright('plan', file('big.json'), '--planner', 'heft', '-o', file('big-plan.json'), '--quiet');
  const path = report('big.html', file('big-plan.json'));
  console.log(`page of 5,000 ops: ${(statSync(path).size / 1e6).toFixed(2)} MB`);
  const { page, faults } = await open(path);
  const ready = await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => done(performance.now()))));
  const drawn = await page.evaluate(() => performance.getEntriesByName('drawn')[0].startTime);
  console.log(`headline and folded graph drawn after ${(drawn / 1000).toFixed(2)} s (seen after ${(ready / 1000).toFixed(2)} s)`);
  assert.match(await text(page, '#graph-summary'), /5,000 ops, .* folded groups/);
  console.log(`pan, folded: ${(await panRate(page, '#graph')).toFixed(0)} frames per second`);
  await page.click('#unfold-all');
  console.log(`pan, unfolded, close: ${(await panRate(page, '#graph')).toFixed(0)} frames per second`);
  await page.click('#graph-section button:has-text("Fit")');
  console.log(`pan, unfolded, all 5,000 ops in sight: ${(await panRate(page, '#graph')).toFixed(0)} frames per second`);
  await page.locator('#timeline').scrollIntoViewIfNeeded();
  await page.click('#timeline-section button:has-text("+")');
  console.log(`pan, timeline: ${(await panRate(page, '#timeline')).toFixed(0)} frames per second`);
  await find(page, 'op2500');
  assert.match(await text(page, '#timeline-status'), /^op2500 on d\d, /);
  assert.deepEqual(faults, []);
  await page.close();
});

test('small windows and paper', async () => {
  const { page, faults } = await open(file('two.html'), { size: { width: 900, height: 700 } });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `the page is ${wide} pixels too wide`);
  await page.emulateMedia({ media: 'print' });
  assert.equal(await page.locator('.controls').isVisible(), false);
  const paper = await page.pdf({ format: 'A4' });
  assert.ok(paper.length > 10000);
  assert.deepEqual(faults, []);
  await page.close();
});
