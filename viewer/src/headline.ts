// What the plan achieves: its story in a sentence or two, and a row of figures.

import type { Plan, Run } from './data';
import { h, replace } from './dom';
import { disturbed, ifEstimated, oneLine, percentText, plural, secondsText, signedPercent, timeText } from './format';
import type { State } from './state';

const OBJECTIVES = {
  latency: 'Latency',
  throughput: 'Time per sample',
  'call-latency': 'Latency in calls',
  'total-completion': 'Total completion time',
};

export class Headline {
  readonly element = h('section', { class: 'headline', id: 'headline', 'aria-label': 'Result' });

  constructor(private readonly state: State) {
    state.onChange((change) => { if (change === 'plan') this.build(); });
    this.build();
  }

  private build() {
    const { report, currentPlan: plan } = this.state;
    const { problem } = report;
    const { single } = plan;
    const tile = (label: string, figure: string, note: string, className = '') =>
      h('div', { class: `tile ${className}` }, h('span', { class: 'label' }, label), h('strong', {}, figure), h('span', { class: 'note' }, note));
    const proven = plan.status === 'optimal';
    // A ratio of costs that are not valid says nothing.
    const speedup = single && plan.value && problem.costs !== 'disturbed' ? single.value / plan.value : null;
    const compared = report.plans.length > 1 ? `, ${plural(report.plans.length, 'plan')} compared` : '';
    replace(this.element,
            h('p', { class: 'story', id: 'story' }, h('strong', {}, plan.story.limit), ` ${plan.story.help}`),
            problem.caution ? h('p', { class: 'caution', id: 'caution' }, `Caution: ${problem.caution}.`) : null,
            tile(OBJECTIVES[plan.objective], timeText(plan.value, problem.unit), plan.planner ? `found by ${oneLine(plan.planner, 40)} in ${secondsText(plan.seconds)}${compared}` : `${oneLine(plan.label, 40)}${compared}`, 'main'),
            tile('Lower bound', timeText(plan.bound, problem.unit), `${oneLine(plan.method, 90)}${ifEstimated(report, '; estimated: ')}`),
            tile('Gap', proven ? '0 %' : percentText(plan.gap), proven ? 'proven optimal' : 'to the bound; the best plan may be nearer', proven ? 'good' : ''),
            single
              ? tile('Best single device', timeText(single.value, problem.unit), `${oneLine(report.devices[single.device].name, 40)}${speedup === null ? '' : `; ${against(speedup)}${problem.error ? `, to within ${percentText(problem.error.ratios, 0)}` : ''}`}`)
              : tile('Best single device', '–', 'none can run and hold everything'),
            plan.run && h('p', { class: `measured ${plan.run.measured.valid ? '' : 'doubtful'}`, id: 'measured' },
                          ...measuredText(plan.run, plan, problem.unit)));
  }
}

// Predicted beside measured, in one line.
function measuredText(run: Run, { value: predicted, objective }: Plan, unit: string): (Node | string)[] {
  const { valid, median, low, high, kept, rejected } = run.measured;
  const what = objective === 'throughput' ? 'blocks of samples' : 'samples';
  const outputs = outputsText(run.outputs);
  const ended = run.interrupted ? '; interrupted' : '';
  const said = `predicted ${timeText(predicted, unit)}`;
  if (!valid || median === null) {
    const why = disturbed(run.measured) || median === null
      ? `other work took the cores in ${rejected} of ${kept + rejected} ${what}`
      : `the ${what} differ too much, ${timeText(low, unit)} to ${timeText(high, unit)}`;
    return [h('strong', {}, 'Run on the real devices: not valid'), ` – ${said}; ${why}; ${outputs}${ended}`];
  }
  const off = predicted !== null && median > 0 ? ` (off by ${signedPercent(predicted / median - 1)})` : '';
  return [h('strong', {}, `Run on the real devices: ${said}, measured ${timeText(median, unit)}${off}`),
          ` – ${timeText(low, unit)} to ${timeText(high, unit)} in the middle 80 % of ${kept} ${what}; ${outputs}${ended}`];
}

function outputsText(outputs: Run['outputs']): string {
  if (outputs === null) return 'outputs not compared';
  const equal = outputs.equal ? 'outputs equal to the unsplit model’s' : 'OUTPUTS NOT EQUAL to the unsplit model’s';
  return equal + (outputs.precision ? ` in ${outputs.precision}` : '') + (outputs.accuracy ? `; ${outputs.accuracy}` : '');
}

// How a plan compares with the best single device.
function against(speedup: number): string {
  if (Math.abs(speedup - 1) < 5e-3) return 'the plan is as fast';
  return speedup > 1 ? `the plan is ${speedup.toFixed(2)} times as fast` : `the plan is ${(1 / speedup).toFixed(2)} times as slow`;
}

export function rulesText(state: State): string {
  return Object.entries(state.currentPlan.rules)
    .map(([name, value]) => (typeof value === 'boolean' ? `${value ? '' : 'no '}${name}` : `${name} ${value}`))
    .join(', ');
}
