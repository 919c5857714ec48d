// A real run of the plan in figures: what the same cores give without a plan, and each segment
// predicted beside measured.

import type { Measured, Run } from './data';
import { h, replace } from './dom';
import { disturbed, oneLine, plural, timeUnderTitle, titleOfTimes, trimmed } from './format';
import type { State } from './state';

const SHOWN = 200;

export class RunView {
  readonly element = h('div', { id: 'run' });

  constructor(private readonly state: State) {
    state.onChange((change) => { if (change === 'plan') this.build(); });
    this.build();
  }

  private build() {
    const { run } = this.state.currentPlan;
    if (!run) {
      replace(this.element, h('p', { class: 'quiet' }, 'This plan was not run.'));
      return;
    }
    replace(this.element, h('div', { class: 'run-tables' },
      h('div', {}, this.baselines(run), this.models(run)), this.segments(run)));
  }

  private time(measured: Measured): string {
    if (measured.median === null) return 'not valid';
    const mark = measured.valid ? '' : disturbed(measured) ? ', disturbed' : ', unsteady';
    return timeUnderTitle(measured.median, this.state.report.problem.unit) + mark;
  }

  private baselines(run: Run): HTMLElement {
    if (run.baselines.length === 0) return h('p', { class: 'quiet' }, 'What the model takes without a plan was not measured.');
    const { unit } = this.state.report.problem;
    const several = run.baselines.some(({ total_completion: total }) => total !== null);
    const rows = run.baselines.map(({ name, latency, total_completion: total, per_second: rate, speedup }) =>
      h('tr', {}, h('th', { scope: 'row' }, oneLine(name, 60)), number(this.time(latency)),
        number(several ? (total ? this.time(total) : '–') : rate === null ? 'not valid' : trimmed(rate, 4)),
        number(speedup === null ? '–' : `${speedup.toFixed(2)}×`)));
    return table('baselines', ['Without a plan', titleOfTimes('Latency', unit), several ? titleOfTimes('Total completion', unit) : 'Samples / s', 'The plan is faster by'], rows);
  }

  private models(run: Run): HTMLElement | null {
    if (run.completions.length < 2) return null;
    const { currentPlan: plan, report: { ops, problem } } = this.state;
    const ends = problem.models.map(() => 0);
    plan.end?.forEach((end, op) => { ends[ops.model[op]] = Math.max(ends[ops.model[op]], end); });
    const rows = run.completions.map(({ name, measured }, model) =>
      h('tr', {}, h('th', { scope: 'row' }, oneLine(name, 60)), number(timeUnderTitle(ends[model], problem.unit)), number(this.time(measured))));
    return table('completions', ['Model ends', titleOfTimes('Predicted', problem.unit), titleOfTimes('Measured', problem.unit)], rows);
  }

  private segments(run: Run): HTMLElement {
    const { ops, problem } = this.state.report;
    const rows = run.segments.slice(0, SHOWN).map((segment, index) =>
      h('tr', {}, h('th', { scope: 'row' }, `${index + 1}`), h('td', {}, oneLine(segment.device, 40)), number(`${segment.ops}`),
        h('td', {}, h('button', { type: 'button', class: 'link', click: () => this.state.select({ kind: 'op', index: segment.first }, true) },
                      oneLine(ops.name[segment.first], 48))),
        number(timeUnderTitle(segment.predicted, problem.unit, 4)), number(this.time(segment.measured))));
    const titles = ['Segment', 'Device', 'Ops', 'First op', titleOfTimes('Predicted', problem.unit), titleOfTimes('Measured', problem.unit)];
    const left = run.segments.length - rows.length;
    return h('div', { class: 'scroll' }, table('segments', titles, rows, ['Device', 'First op']),
             left > 0 ? h('p', { class: 'quiet' }, `and ${plural(left, 'segment')} more`) : null);
  }
}

function number(text: string): HTMLElement {
  return h('td', { class: 'number' }, text);
}

// The first column, and those named in `words`, hold text; the others numbers.
function table(id: string, titles: string[], rows: HTMLElement[], words: string[] = []): HTMLElement {
  const heads = titles.map((title, column) => h('th', { scope: 'col', class: column === 0 || words.includes(title) ? '' : 'number' }, title));
  return h('table', { class: 'grid', id }, h('thead', {}, h('tr', {}, ...heads)), h('tbody', {}, ...rows));
}
