// What a reader sees on the report page, view by view, in Chromium.
//
//   PLACEWRIGHT_PROGRAM=build/placewright node --test tests/report/page_views.mjs

import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { file, find, open, placewright, report, root, text, tipAt, written } from './page_driver.mjs';

// A problem in our own format on two equal devices; `more` replaces what it names.
function problemOf(name, { ops, tensors, ...more }) {
  const problem = {
    placewright: 'problem', version: 2, name, unit: 'ms', objective: 'latency', kinds: [{ name: 'gpu' }],
    devices: [{ name: 'gpu0', kind: 'gpu' }, { name: 'gpu1', kind: 'gpu' }],
    interconnect: { kind: 'links', all: { latency: 0.01, bandwidth: 1e7 } },
    models: [{ name }], ...more,
    ops: ops.map((op) => ({ type: 'MatMul', flops: 2e9, memory: 1 << 20, time: [1], ...op })),
    tensors: tensors.map((tensor) => ({ bytes: 1 << 20, shape: '1x64x4096 f32', ...tensor })),
  };
  writeFileSync(file(`${name}.json`), JSON.stringify(problem));
  return file(`${name}.json`);
}

function planOf(problem, planner = 'heft', ...words) {
  const plan = problem.replace(/\.json$/, `-${planner}.json`);
  placewright('plan', problem, '--planner', planner, ...words, '-o', plan, '--quiet');
  return plan;
}

const chained = (names) => names.slice(1).map((name, i) => ({ from: names[i], to: [name] }));

// Twelve layers with residual edges, as GPT-2's; two branches in each, so that two devices have
// something to do.
function transformer(more = {}) {
  const PARTS = ['ln_1/MVN', 'attn.c_attn/MatMul', 'attn/Softmax', 'attn.c_proj/MatMul', 'mlp.c_fc/MatMul', 'mlp.act/Gelu', 'mlp.c_proj/MatMul'];
  const names = ['transformer.wte/Gather'];
  const tensors = [];
  for (let layer = 0; layer < 12; ++layer) {
    const before = names[names.length - 1];
    const own = PARTS.map((part) => `transformer.h.${layer}.${part}`);
    tensors.push({ from: before, to: [own[0], own[3]] }, ...chained(own.slice(0, 3)), ...chained(own.slice(3)));
    names.push(...own, `transformer.h.${layer}/Add`);
    tensors.push({ from: own[2], to: [`transformer.h.${layer}/Add`] }, { from: own[6], to: [`transformer.h.${layer}/Add`] });
  }
  names.push('lm_head/MatMul');
  tensors.push({ from: 'transformer.h.11/Add', to: ['lm_head/MatMul'] });
  return problemOf('transformer', { ops: names.map((name) => ({ name })), tensors, ...more });
}

const PIPELINE = join(root, 'examples/msr/throughput/LayerGraphs/bert24_inference.json');
const pipelinePlan = () => {
  placewright('plan', PIPELINE, '--objective', 'throughput', '--planner', 'ideals-linear', '-o', file('stages.json'), '--quiet');
  return file('stages.json');
};

test('a transformer folds into its layers, in order', async () => {
  const { page, faults } = await open(report('transformer.html', planOf(transformer())));
  const layers = (await written(page, 'graph')).filter(({ shown }) => shown.includes('transformer.h.'));
  const inReadingOrder = layers.sort((a, b) => (Math.abs(a.x - b.x) > 60 ? a.x - b.x : a.y - b.y)).map(({ shown }) => shown.replace('▸ ', ''));
  assert.deepEqual(inReadingOrder, Array.from({ length: 12 }, (_, layer) => `transformer.h.${layer}`));

  // Names without what the frame says already.
  await find(page, 'transformer.h.5.attn/Softmax');
  const shown = (await written(page, 'graph')).map((each) => each.shown);
  assert.ok(shown.includes('▾ transformer.h.5'), shown.join(' | '));
  assert.ok(shown.includes('attn/Softmax'), shown.join(' | '));
  assert.deepEqual(faults, []);
  await page.close();
});

test('labels keep the end that differs', async () => {
  const names = ['first', 'second', 'third'].map((end) => `a_very_long_prefix_that_every_op_of_this_model_has/${end}`);
  const { page, faults } = await open(report('labels.html', planOf(problemOf('labels', { ops: names.map((name) => ({ name })), tensors: chained(names) }))));
  const shown = (await written(page, 'graph')).map((each) => each.shown).filter((each) => each.includes('…'));
  for (const end of ['first', 'second', 'third']) assert.ok(shown.some((each) => each.endsWith(`/${end}`)), shown.join(' | '));
  assert.deepEqual(faults, []);
  await page.close();
});

test('an edge counts a tensor once, however many ops read it', async () => {
  const readers = ['b', 'c', 'd'];
  const problem = problemOf('fan', {
    ops: [{ name: 'a', pin: 'gpu0' }, ...readers.map((name) => ({ name, pin: 'gpu1' }))], tensors: [{ from: 'a', to: readers }],
    colocate: [readers],
  });
  const { page, faults } = await open(report('fan.html', planOf(problem)));
  await page.selectOption('#grouping', { label: 'colocated ops' });
  await page.click('#fold-all');
  const labels = (await written(page, 'graph')).map((each) => each.shown).filter((each) => each.includes('MiB'));
  assert.deepEqual(labels, ['1 MiB · 0.115 ms']);
  assert.deepEqual(faults, []);
  await page.close();
});

test('the groups of a planner are a grouping of its own plan alone', async () => {
  const names = ['a', 'b', 'c', 'd'];
  const heft = planOf(problemOf('grouped', { ops: names.map((name) => ({ name })), tensors: chained(names) }));
  const plan = { ...JSON.parse(readFileSync(heft, 'utf8')), planner: 'hsdag', groups: [['a', 'b'], ['d', 'c']] };
  writeFileSync(file('grouped-hsdag.json'), JSON.stringify(plan));
  const { page, faults } = await open(report('grouped.html', heft, file('grouped-hsdag.json')));
  const offered = () => page.locator('#grouping option').allTextContents();
  assert.ok(!(await offered()).includes('groups of the planner'));
  await page.selectOption('#plan', '1');
  await page.selectOption('#grouping', { label: 'groups of the planner' });
  await page.click('#fold-all');
  const shown = (await written(page, 'graph')).map((each) => each.shown).filter((each) => each.startsWith('▸'));
  assert.deepEqual(shown.sort(), ['▸ a …', '▸ c …']);
  await page.selectOption('#plan', '0');
  assert.equal(await page.locator('#grouping option:checked').textContent(), 'no groups');
  assert.deepEqual(faults, []);
  await page.close();
});

test('the story at the top, and a caution about estimated costs', async () => {
  const estimated = { origin: ['op times: estimated from flops and bytes'] };
  for (const more of [{}, estimated]) {
    const { page, faults } = await open(report('story.html', planOf(transformer(more))));
    assert.match(await text(page, '#story'), /^Limited by compute on gpu[01]: \d+ % of the critical path, [\d.]+ ms.* What would help most: with 10 % more speed of gpu[01] this plan takes [\d.]+ ms \(\d+ % less\)\.$/);
    assert.equal(await page.locator('#caution').count(), more === estimated ? 1 : 0);
    if (more === estimated) {
      assert.match(await text(page, '#headline'), /the costs are estimated, not measured/);
      assert.match(await text(page, '#headline'), /Lower bound.*estimated: times are off by up to 2.5 times.*times as fast, to within 25 %/);
      assert.match(await text(page, '#compare-section'), /no plan can be below it, if the estimates hold/);
    }
    assert.deepEqual(faults, []);
    await page.close();
  }
});

test('shapes and flops, and a link that opens the selection again', async () => {
  const path = report('details.html', planOf(transformer()));
  const { page, faults } = await open(path);
  await find(page, 'transformer.h.7.mlp.act/Gelu');
  assert.match(await text(page, '#details'), /Work2 Gflop/);
  assert.match(await text(page, '#details'), /c_fc\/MatMul 1x64x4096 f32, 1 MiB/);
  const link = await page.evaluate(() => location.hash);
  assert.equal(await page.getAttribute('#link', 'href'), link);
  const again = await open(path, { link });
  assert.equal(await text(again.page, '#details h3'), 'transformer.h.7.mlp.act/Gelu');
  const shown = (await written(again.page, 'graph')).map((each) => each.shown);
  assert.ok(shown.includes('mlp.act/Gelu'), 'it is in sight and can be read');
  const unknown = await open(path, { link: '#by=nonsense&op=nobody&plan=none' });
  assert.ok(await unknown.page.locator('#details').isHidden(), 'nothing is selected');
  for (const each of [page, again.page, unknown.page]) await each.close();
  assert.deepEqual([...faults, ...again.faults, ...unknown.faults], []);
});

test('after a search the arrows move in the graph', async () => {
  const names = ['a', 'b', 'c'];
  const { page, faults } = await open(report('keys.html', planOf(problemOf('keys', { ops: names.map((name) => ({ name })), tensors: chained(names) }))));
  await find(page, 'b');
  await page.keyboard.press('ArrowDown');
  assert.equal(await text(page, '#details h3'), 'c');
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  assert.equal(await text(page, '#details h3'), 'a');
  assert.deepEqual(faults, []);
  await page.close();
});

test('a table and a grouping for each of several models', async () => {
  const models = ['ocr', 'speech', 'layout'];
  const ops = models.flatMap((model, index) => ['x', 'y'].map((name) => ({ name: `${model}/${name}`, model: index })));
  const problem = problemOf('several', {
    objective: 'total-completion', models: models.map((name) => ({ name })), tensors: models.map((model) => ({ from: `${model}/x`, to: [`${model}/y`] })),
    ops: ops.map(({ name, model }) => ({ name, model: models[model] })),
  });
  const plan = planOf(problem);
  const { page, faults } = await open(report('several.html', plan));
  const rows = await page.locator('#models tbody tr').allTextContents();
  assert.deepEqual(rows.map((row) => row.match(/^[a-z]+/)[0]), models);
  const { ops: times } = JSON.parse(readFileSync(plan, 'utf8')).schedule;
  models.forEach((model, index) => {
    const end = Math.max(...times.filter(({ op }) => op.startsWith(`${model}/`)).map((op) => op.end));
    assert.ok(rows[index].includes(`${Number(end.toPrecision(5))} ms`), `${rows[index]} has the end ${end}`);
  });
  await page.click('#models button:has-text("speech")');
  assert.equal(await text(page, '#details h3'), 'speech');
  assert.match(await text(page, '#details'), /Ops2/);
  assert.equal(await page.inputValue('#grouping'), await page.getAttribute('#grouping option:has-text("models")', 'value'));
  assert.deepEqual(faults, []);
  await page.close();
});

test('bars thinner than a pixel are shaded by how much of the time they fill; a map of an unfolded large graph', async () => {
  placewright('generate', 'layered', '--ops', '5000', '--devices', '2', '--seed', '3', '-o', file('dense.json'), '--quiet');
  const { page, faults } = await open(report('dense.html', planOf(file('dense.json'))));
  const shades = await page.evaluate(() => {
    const canvas = document.getElementById('timeline');
    const ratio = canvas.width / canvas.clientWidth;
    const row = canvas.getContext('2d').getImageData(140 * ratio, (26 + 2 * 29 + 7) * ratio, 1000 * ratio, 1).data; // the first direction
    const seen = new Set();
    for (let i = 0; i < row.length; i += 4) seen.add(`${row[i]} ${row[i + 1]} ${row[i + 2]}`);
    return seen.size;
  });
  assert.ok(shades > 8, `${shades} shades`);

  assert.equal(await page.locator('#minimap').isVisible(), false, 'all is in sight');
  await page.click('#unfold-all');
  await find(page, 'op2500');
  await page.waitForSelector('#minimap', { state: 'visible' });
  const before = await written(page, 'graph');
  await page.click('#minimap', { position: { x: 5, y: 5 } });
  const after = await written(page, 'graph');
  assert.ok(before.some(({ shown }) => shown === 'op2500') && !after.some(({ shown }) => shown === 'op2500'), 'the picture has moved away');
  assert.deepEqual(faults, []);
  await page.close();
});

test('pipelines: a predicted timeline without a run, stages in a row, memory to one scale, axes', async () => {
  const plan = pipelinePlan();
  const { stages, value } = JSON.parse(readFileSync(plan, 'utf8'));
  const { page, faults } = await open(report('stages.html', plan));
  const titles = (await written(page, 'graph')).filter(({ shown }) => /stage \d/.test(shown));
  assert.deepEqual(titles.map(({ shown }) => Number(/stage (\d)/.exec(shown)[1])), stages.map((_, i) => i + 1));
  assert.ok(titles.every(({ x }, i) => i === 0 || x > titles[i - 1].x), 'from left to right');

  await page.locator('#timeline').scrollIntoViewIfNeeded();
  assert.match(await tipAt(page, 0.002, 26 + 13), new RegExp(`^sample 0on acc0stage 1, ${stages[0].ops.length} ops, predicted`));
  assert.match(await text(page, '#story'), /^Limited by stage \d of \d, on acc\d: compute/);
  assert.match(await text(page, '#headline'), new RegExp(String(Number(value.toPrecision(5)))));

  const levels = await page.evaluate(() => [...document.querySelectorAll('.level > .alive')].map((bar) => parseFloat(bar.style.width)));
  const peaks = await page.evaluate(() => JSON.parse(document.getElementById('data').textContent).plans[0].devices.map(({ peak }) => peak));
  const most = Math.max(...peaks);
  levels.forEach((level, i) => assert.ok(Math.abs(level / Math.max(...levels) - peaks[i] / most) < 1e-3, `device ${i}: ${level} %`));
  for (const chart of ['#load-section', '#memory-section', '#compare-section']) {
    assert.ok(await page.locator(`${chart} .axis .tick`).count() >= 2, `${chart} has an axis`);
  }
  assert.deepEqual(faults, []);
  await page.close();
});

test('two plans side by side, for different objectives', async () => {
  const problem = transformer();
  const plans = [planOf(problem, 'heft'), planOf(problem, 'ideals-linear', '--objective', 'throughput')];
  const { page, faults } = await open(report('beside.html', ...plans));
  assert.equal(await page.locator('#beside-graph').count(), 0);
  await page.selectOption('#beside', { label: 'ideals-linear' });
  const captions = await page.locator('#graph-section .plan-caption').allTextContents();
  assert.match(captions[0], /^heft: latency [\d.]+ ms\. Limited by/);
  assert.match(captions[1], /^ideals-linear: throughput [\d.]+ ms\. Limited by stage/);
  assert.equal(await page.locator('#beside-timeline').count(), 1);

  // What is selected and unfolded in one is so in the other.
  await find(page, 'transformer.h.3.attn/Softmax');
  for (const graph of ['graph', 'beside-graph']) {
    const shown = (await written(page, graph)).map((each) => each.shown);
    assert.ok(shown.includes('▾ transformer.h.3'), `${graph}: ${shown.join(' | ')}`);
  }
  assert.match(await text(page, '#beside-timeline-status'), /^sample 0 on gpu/);
  // Both timelines have one scale.
  const ticks = async (canvas) => (await written(page, canvas)).filter(({ shown, y }) => y === 11 && !isNaN(Number(shown))).map(({ shown, x }) => `${shown} ${x}`);
  assert.deepEqual(await ticks('timeline'), await ticks('beside-timeline'));

  // The link opens both again.
  const again = await open(file('beside.html'), { link: await page.evaluate(() => location.hash) });
  assert.equal(await again.page.locator('#beside-graph').count(), 1);
  await again.page.selectOption('#beside', { label: 'no plan' });
  assert.equal(await again.page.locator('#beside-graph').count(), 0);
  assert.deepEqual([...faults, ...again.faults], []);
  await page.close();
  await again.page.close();
});

// Two ops in a chain, the first on one core and the second on two.
const cores = ['core 0', 'core 1'];
function twoCores(name, more = {}) {
  const use = (...names) => names.map((resource) => ({ resource, amount: 1 }));
  return problemOf(name, {
    kinds: [{ name: 'one' }, { name: 'two' }], resources: cores.map((core) => ({ name: core, capacity: 1 })), spaces: [{ name: 'host memory' }],
    devices: [{ name: 'a', kind: 'one', uses: use('core 0'), space: 'host memory' },
              { name: 'both', kind: 'two', uses: use(...cores), space: 'host memory' }],
    ops: [{ name: 'narrow', time: [2, 9], pin: 'a' }, { name: 'wide', time: [9, 1], pin: 'both' }],
    tensors: [{ from: 'narrow', to: ['wide'] }], ...more,
  });
}

test('which stages take turns on cores', async () => {
  const problem = twoCores('turns', { objective: 'throughput' });
  const { page, faults } = await open(report('turns.html', planOf(problem, 'topo')));
  const lanes = (await written(page, 'timeline')).map((each) => each.shown);
  for (const core of cores) assert.ok(lanes.includes(core), lanes.join(' | '));
  await page.locator('#timeline').scrollIntoViewIfNeeded();
  assert.match(await tipAt(page, 0.965, 26 + 2 * 29 + 18 + 7), /^sample 5on bothholds 1 of 1 of core 1/);
  assert.match(await text(page, '#story'), /Limited by stages 1 and 2 of 2, which take turns on core 0: 3 ms of a period of 3 ms/);
  assert.match(await text(page, '.loads'), /The busiest, core 0, sets it\./);
  assert.match(await text(page, '.loads .resources'), /core 01000 %core 13367 %/); // held, and free
  assert.deepEqual(faults, []);
  await page.close();
});

test('who holds which cores', async () => {
  const problem = twoCores('cores');
  const { page, faults } = await open(report('cores.html', planOf(problem)));
  const lanes = (await written(page, 'timeline')).map((each) => each.shown);
  for (const core of cores) assert.ok(lanes.includes(core), lanes.join(' | '));
  await page.locator('#timeline').scrollIntoViewIfNeeded();
  assert.match(await tipAt(page, 0.9, 26 + 2 * 29 + 18 + 7), /^wideon bothholds 1 of 1 of core 1/);
  await find(page, 'wide');
  assert.match(await text(page, '#details'), /Holdscore 0, core 1/);
  await find(page, 'narrow');
  assert.match(await text(page, '#details'), /Holdscore 0Runs/);
  assert.deepEqual(faults, []);
  await page.close();
});

test('the side panel is there for a selection, and gives its width back', async () => {
  const { page, faults } = await open(report('panel.html', planOf(transformer())));
  const width = async () => (await page.locator('#graph').boundingBox()).width;
  const wide = await width();
  assert.ok(await page.locator('#details').isHidden());
  assert.match(await text(page, '.legend'), /gpu0.*gpu1.*critical path/);
  await find(page, 'transformer.h.5.attn/Softmax');
  assert.ok(await page.locator('#details').isVisible());
  assert.ok((await width()) < wide - 300);
  await page.keyboard.press('Escape');
  assert.equal(await width(), wide);
  assert.deepEqual(faults, []);
  await page.close();
});

// Two columns of eight ops that exchange everything: all labels at once would be a red blot.
test('labels of cut edges bundle, cover no box, and the pointer tells what they stand for', async () => {
  const left = Array.from({ length: 8 }, (_, i) => `left${i}`);
  const right = Array.from({ length: 8 }, (_, i) => `right${i}`);
  const problem = problemOf('bundle', {
    ops: [...left.map((name) => ({ name, pin: 'gpu0' })), ...right.map((name) => ({ name, pin: 'gpu1' }))],
    tensors: left.map((name) => ({ from: name, to: right })),
  });
  const { page, faults } = await open(report('bundle.html', planOf(problem)), { size: { width: 1600, height: 1400 } });
  await page.selectOption('#grouping', { label: 'no groups' }).catch(() => {});
  for (let step = 0; step < 3; ++step) await page.click('button[title="Zoom in"] >> nth=0');
  const labels = (await written(page, 'graph')).filter(({ shown }) => shown.includes('MiB'));
  assert.ok(labels.length > 0 && labels.length < 24, `${labels.length} labels`);
  const bundle = labels.find(({ shown }) => /^\d+ edges · /.test(shown));
  assert.ok(bundle, labels.map(({ shown }) => shown).join(' | '));
  const { x, y, width, height } = await page.locator('#graph').boundingBox();
  const told = new Set();
  for (let step = 1; step < 40; ++step) {
    await page.mouse.move(x + width / 2, y + (height * step) / 40);
    if (await page.locator('.tip').isVisible()) told.add(await text(page, '.tip'));
  }
  assert.ok([...told].some((tip) => /left\d → right\d.*1 MiB/.test(tip)), [...told].join(' | '));
  assert.deepEqual(faults, []);
  await page.close();
});

test('no number is without a unit or the words "as stated"', async () => {
  const { page, faults } = await open(report('stated.html', planOf(transformer({ unit: 'none' }))));
  assert.match(await text(page, '#headline'), /Latency[\d.]+ as stated.*Lower bound[\d.]+ as stated.*Best single device[\d.]+ as stated/);
  assert.match(await text(page, '#story'), /critical path, [\d.]+ as stated/);
  assert.match(await text(page, '#compare-section'), /Value, as stated/);
  assert.match(await text(page, '#graph-section'), /^Graph \(times as stated\)/);
  assert.ok(!(await written(page, 'graph')).some(({ shown }) => shown.includes('as stated')));
  assert.ok((await written(page, 'timeline')).some(({ shown }) => shown === 'as stated'));
  await find(page, 'transformer.h.5.attn/Softmax');
  assert.match(await text(page, '#details'), /Runs[\d.]+ to [\d.]+ as stated.*Time, as stated/);
  assert.deepEqual(faults, []);
  await page.close();
});

test('the memory card has no scrollbar and no charts of nothing', async () => {
  const devices = Array.from({ length: 12 }, (_, i) => ({ name: `gpu${i}`, kind: 'gpu' }));
  const { page, faults } = await open(report('memory.html', planOf(transformer({ devices }))));
  const grid = page.locator('.memory-grid');
  assert.equal(await grid.evaluate((element) => getComputedStyle(element).overflowY), 'visible');
  assert.match(await text(page, '#memory-section'), /Too little to draw: .*gpu\d+ 0 B/);
  const drawn = await page.locator('.memory-grid figure').count();
  assert.ok(drawn > 0 && drawn < 12, `${drawn} charts`);
  assert.deepEqual(faults, []);
  await page.close();
});
