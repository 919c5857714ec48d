import './style.css';
import { Beside } from './beside';
import { ComparisonView, LoadChart, MemoryChart } from './charts';
import { readReport } from './data';
import { DetailsPanel, legendOf } from './details';
import { h } from './dom';
import { oneLine, plural } from './format';
import { GraphView } from './graph_view';
import { Headline, rulesText } from './headline';
import { linkPage } from './link';
import { ModelsView } from './models_view';
import { RunView } from './run_view';
import { Search } from './search';
import { State } from './state';
import { Tables } from './tables';
import { currentTheme, startTheme, toggleTheme } from './theme';
import { TimelineView } from './timeline_view';
import { mountTip } from './tip';

const GROUPINGS: Record<string, string> = {
  ops: 'no groups', blocks: 'blocks', parts: 'smaller blocks', models: 'models', colocated: 'colocated ops', stages: 'stages', calls: 'calls',
  groups: 'groups of the planner',
};

function button(text: string, label: string, action: () => void): HTMLElement {
  return h('button', { type: 'button', title: label, 'aria-label': label, click: action }, text);
}

function themeButton(state: State): HTMLElement {
  const element = h('button', {
    type: 'button', id: 'theme', click: () => {
      toggleTheme();
      state.themeChanged();
    },
  });
  const show = () => {
    const dark = currentTheme() === 'dark';
    element.textContent = dark ? 'Light' : 'Dark';
    element.setAttribute('aria-label', dark ? 'Use light colours' : 'Use dark colours');
  };
  state.onChange((change) => { if (change === 'theme') show(); });
  show();
  return element;
}

// Which plan is shown, and which one beside it.
function planChoices(state: State): HTMLElement[] {
  const { plans } = state.report;
  if (plans.length < 2) return [];
  const option = (index: number, chosen: number) =>
    h('option', { value: index, selected: index === chosen }, oneLine(plans[index].label, 48));
  const plan = h('select', { id: 'plan', change: () => state.setPlan(Number(plan.value)) });
  const beside = h('select', { id: 'beside', change: () => state.setOther(Number(beside.value)) });
  const show = () => {
    plan.replaceChildren(...plans.map((_, index) => option(index, state.plan)));
    beside.replaceChildren(h('option', { value: -1 }, 'no plan'),
                           ...plans.map((_, index) => index).filter((index) => index !== state.plan).map((index) => option(index, state.other)));
  };
  state.onChange((change) => { if (change === 'plan' || change === 'difference') show(); });
  show();
  return [h('label', { class: 'choice' }, 'Plan ', plan), h('label', { class: 'choice' }, 'beside ', beside)];
}

function graphTools(state: State, graph: GraphView): HTMLElement {
  const choice = h('select', { id: 'grouping', change: () => state.setGrouping(Number(choice.value)) });
  const fold = button('Fold all', 'Fold all groups', () => state.setAllFolded(true));
  const unfold = button('Unfold all', 'Unfold all groups', () => state.setAllFolded(false));
  fold.id = 'fold-all';
  unfold.id = 'unfold-all';
  const show = () => {
    choice.replaceChildren(...state.groupingsOfPlan().map((index) => {
      const { name } = state.report.groupings[index];
      return h('option', { value: index, selected: index === state.grouping }, GROUPINGS[name] ?? name);
    }));
    fold.hidden = unfold.hidden = !state.currentGrouping.framed;
  };
  state.onChange((change) => { if (change === 'plan' || change === 'grouping') show(); });
  show();
  return h('div', { class: 'tools' },
           h('label', { class: 'choice' }, 'Group by ', choice), fold, unfold,
           button('−', 'Zoom out', () => graph.zoomBy(1 / 1.4)),
           button('+', 'Zoom in', () => graph.zoomBy(1.4)),
           button('Fit', 'Show the whole graph', () => graph.fit()));
}

// What the plan is a plan of, in one line.
function facts(state: State): HTMLElement {
  const { report } = state;
  const element = h('p', { class: 'quiet' });
  const show = () => {
    const { models, edges } = report.problem;
    element.textContent = [
      plural(report.ops.name.length, 'op'), plural(edges, 'edge'), plural(report.devices.length, 'device'),
      models.length > 1 ? plural(models.length, 'model') : '', `objective ${state.currentPlan.objective}`, rulesText(state),
    ].filter(Boolean).join(' · ');
  };
  state.onChange((change) => { if (change === 'plan') show(); });
  show();
  return element;
}

function section(id: string, title: string, tools: HTMLElement | null, ...content: (Node | null)[]): HTMLElement {
  return h('section', { class: 'panel', id, 'aria-labelledby': `${id}-title` },
           h('header', {}, h('h2', { id: `${id}-title` }, title), tools), ...content);
}

function build() {
  const report = readReport();
  const state = new State(report);
  startTheme(() => state.themeChanged());
  const { problem } = report;
  document.title = `${oneLine(problem.name, 60)}: ${[...new Set(report.plans.map((plan) => plan.objective))].join(' and ')} report`;

  const graph = new GraphView(state);
  const search = new Search(state, () => graph.canvas.focus());
  const timed = report.plans.some((plan) => plan.start || plan.samples);
  const timeline = timed ? new TimelineView(state) : null;
  const beside = new Beside(state, graph, timeline);
  const details = new DetailsPanel(state);
  const timelineTools = timeline && h('div', { class: 'tools' },
    button('−', 'Zoom out', () => timeline.zoomBy(1 / 1.5)),
    button('+', 'Zoom in', () => timeline.zoomBy(1.5)),
    button('Fit', 'Show all of the time', () => timeline.fit()));

  document.getElementById('app')!.append(
    h('header', { class: 'top' },
      h('div', { class: 'title' },
        h('h1', {}, oneLine(problem.name, 80) || 'Plan'),
        facts(state)),
      h('div', { class: 'controls' }, ...planChoices(state), search.element, themeButton(state))),
    new Headline(state).element,
    h('main', {},
      h('div', { class: 'work' },
        section('graph-section', problem.unit === 'none' ? 'Graph (times as stated)' : 'Graph', graphTools(state, graph),
                h('div', { class: 'plan-columns' },
                  h('div', { class: 'plan-column' }, beside.graphCaption, graph.element, graph.summary), beside.graph),
                legendOf(state)),
        details.element),
      timeline ? section('timeline-section', 'Timeline', timelineTools, beside.timelineCaption, timeline.element, timeline.status, beside.timeline) : '',
      report.problem.models.length > 1 ? section('models-section', 'Models', null, new ModelsView(state).element) : '',
      report.plans.some((plan) => plan.run) ? section('run-section', 'Measured', null, new RunView(state).element) : '',
      h('div', { class: 'pair' },
        section('load-section', 'Load of each device', null, new LoadChart(state).element),
        section('memory-section', report.plans.some((plan) => plan.devices.some(({ steps }) => steps.length > 0)) ? 'Memory over time' : 'Memory', null, new MemoryChart(state).element)),
      section('compare-section', report.plans.length > 1 ? 'Plans compared' : 'Against one device and the bound', null, new ComparisonView(state).element),
      section('lists-section', 'In detail', null, new Tables(state).element)),
    h('footer', { class: 'quiet' }, `${report.program} report`));
  mountTip();
  linkPage(state);

  document.addEventListener('keydown', (event) => {
    const typing = event.target instanceof HTMLInputElement || event.target instanceof HTMLSelectElement;
    if (event.key === '/' && !typing) {
      event.preventDefault();
      search.input.focus();
      search.input.select();
    } else if (event.key === 'Escape' && !typing) {
      state.select(null);
    }
  });
}

build();
document.documentElement.dataset.ready = 'true';
