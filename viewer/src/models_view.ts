// Each model of the problem: when it arrives and ends, what it takes, and where its ops are.

import { deviceChip } from './charts';
import { h, replace } from './dom';
import { bytesText, duration, flopsText, oneLine, timeUnderTitle, titleOfTimes } from './format';
import type { State } from './state';

export class ModelsView {
  readonly element = h('div', { id: 'models' });

  constructor(private readonly state: State) {
    state.onChange((change) => { if (change === 'plan') this.build(); });
    this.build();
  }

  private build() {
    const { report: { problem }, currentPlan: plan } = this.state;
    const times = ['Arrives', 'Starts', 'Ends', 'Takes'].map((title) => titleOfTimes(title, problem.unit));
    const titles = ['Ops', 'Weights', 'Work', ...(plan.start ? times : [])];
    replace(this.element, h('table', { class: 'grid' },
      h('thead', {}, h('tr', {}, h('th', {}, 'Model'), ...titles.map((title) => h('th', { class: 'number' }, title)), h('th', {}, 'Ops on each device'))),
      h('tbody', {}, ...problem.models.map((_, model) => this.row(model)))));
  }

  private row(model: number): HTMLElement {
    const { report, currentPlan: plan } = this.state;
    const { name, arrival } = report.problem.models[model];
    const ops = report.ops.model.map((of, op) => (of === model ? op : -1)).filter((op) => op >= 0);
    const sum = (of: number[]) => ops.reduce((total, op) => total + of[op], 0);
    const time = (value: number) => timeUnderTitle(value, report.problem.unit);
    const figures = [ops.length.toLocaleString('en'), bytesText(sum(report.ops.memory)), sum(report.ops.flops) > 0 ? flopsText(sum(report.ops.flops)) : '–'];
    if (plan.start) {
      const start = ops.reduce((least, op) => Math.min(least, plan.start![op]), Infinity);
      const end = ops.reduce((most, op) => Math.max(most, plan.end![op]), arrival);
      figures.push(time(arrival), time(ops.length > 0 ? start : arrival), time(end), time(duration(arrival, end)));
    }
    const devices = report.devices.map((_, device) => ({ device, count: ops.filter((op) => plan.placement[op] === device).length }))
      .filter(({ count }) => count > 0);
    return h('tr', {}, h('th', { scope: 'row' }, this.link(name)), ...figures.map((figure) => h('td', { class: 'number' }, figure)),
             h('td', { class: 'model-devices' }, ...devices.map(({ device, count }) => h('span', {}, deviceChip(report, device), ` ${count}`))));
  }

  // Selects the model in the graph.
  private link(name: string): HTMLElement {
    const { report } = this.state;
    const show = () => {
      const grouping = report.groupings.findIndex((candidate) => candidate.name === 'models');
      this.state.setGrouping(grouping);
      this.state.select({ kind: 'group', index: report.groupings[grouping].groups.findIndex((group) => group.name === name) }, true);
    };
    return h('button', { type: 'button', class: 'link', click: show }, oneLine(name, 60));
  }
}
