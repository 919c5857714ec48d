// A second plan beside the first, also one for another objective: a graph and a timeline of its
// own. Folds, selection, zoom and the scale of time are the same in both.

import { h, replace } from './dom';
import { oneLine, timeText } from './format';
import { GraphView } from './graph_view';
import { State, type Change } from './state';
import { TimelineView } from './timeline_view';

function caption(state: State): HTMLElement {
  const { currentPlan: plan, report } = state;
  return h('p', { class: 'plan-caption' }, h('strong', {}, `${oneLine(plan.label, 48)}: `),
           `${plan.objective} ${timeText(plan.value, report.problem.unit)}. ${plan.story.limit}`);
}

// Makes `to` show what `from` shows.
function copy(from: State, to: State, change: Change, reveal: boolean) {
  const same = () => to.grouping === from.grouping;
  if (change === 'grouping') {
    const shared = to.groupingsOfPlan().includes(from.grouping);
    const own = to.groupingsOfPlan().find((index) => to.report.groupings[index].plan !== undefined);
    const wanted = shared ? from.grouping : own ?? to.grouping;
    if (wanted !== to.grouping) to.setGrouping(wanted);
  }
  if ((change === 'fold' || change === 'grouping') && same()) to.setFolds(from.folded);
  if (change === 'selection') {
    const { selection } = from;
    const known = selection?.kind === 'op' || (selection?.kind === 'group' && same());
    to.select(known ? selection : null, reveal);
  }
}

export class Beside {
  readonly graph = h('div', { class: 'plan-column', id: 'beside-column', hidden: true });
  readonly timeline = h('div', { class: 'plan-row', hidden: true });
  readonly graphCaption = h('div', { hidden: true });
  readonly timelineCaption = h('div', { hidden: true });
  private copying = false;
  private second: { state: State; graph: GraphView; timeline: TimelineView | null } | null = null;

  constructor(private readonly state: State, private readonly first: GraphView, private readonly firstTimeline: TimelineView | null) {
    state.onChange((change, reveal) => {
      if (change === 'difference' || change === 'plan') this.build();
      else if (change === 'theme') this.second?.state.themeChanged();
      else if (this.second) this.follow(state, this.second.state, change, reveal);
    });
    first.onMove((transform) => this.second?.graph.moveLike(first, transform));
    firstTimeline?.onMove((transform) => this.second?.timeline?.moveLike(transform));
  }

  private follow(from: State, to: State, change: Change, reveal: boolean) {
    if (this.copying) return;
    this.copying = true;
    copy(from, to, change, reveal);
    this.copying = false;
  }

  private build() {
    const { report, other } = this.state;
    const shown = other >= 0;
    for (const element of [this.graph, this.timeline, this.graphCaption, this.timelineCaption]) element.hidden = !shown;
    this.graph.parentElement?.classList.toggle('two', shown);
    this.second = null;
    replace(this.graph);
    replace(this.timeline);
    this.firstTimeline?.shareScale(null);
    if (!shown) return;

    const state = new State(report);
    state.setPlan(other);
    copy(this.state, state, 'grouping', false);
    const graph = new GraphView(state, 'beside-');
    const timeline = this.firstTimeline ? new TimelineView(state, 'beside-') : null;
    this.second = { state, graph, timeline };
    state.onChange((change, reveal) => this.follow(state, this.state, change, reveal));
    graph.onMove((transform) => this.first.moveLike(graph, transform));
    timeline?.onMove((transform) => this.firstTimeline!.moveLike(transform));
    replace(this.graphCaption, caption(this.state));
    replace(this.timelineCaption, caption(this.state));
    replace(this.graph, caption(state), graph.element, graph.summary);
    if (timeline) replace(this.timeline, caption(state), timeline.element, timeline.status);
    timeline?.shareScale(this.firstTimeline);
    this.firstTimeline?.shareScale(timeline);
    this.follow(this.state, state, 'selection', true);
  }
}
