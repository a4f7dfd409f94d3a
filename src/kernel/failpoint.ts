// Places where a test may pause, fail or kill the process, to prove what holds afterwards. Nothing here reads a setting:
// without a failpoint that is passed in, nothing happens.

/** Those that requests pass, and the ledger under them. */
export const requestFailpoints = [
  'after_hold',
  'after_send',
  'after_first_byte',
  'mid_stream',
  'before_settle',
  'after_commit',
  'after_terminal',
  'in_reap',
  'in_topup',
] as const

/** And those of batches at their providers: a job is written down; the provider has it, and its id is not stored yet. */
export const failpointNames = [...requestFailpoints, 'batch_intended', 'batch_created'] as const

export type RequestFailpoint = (typeof requestFailpoints)[number]
export type FailpointName = (typeof failpointNames)[number]

/** Called when the place is reached. It may throw, never return, or return a promise that the caller awaits. */
export type Failpoint = (name: FailpointName) => Promise<void> | undefined

export const noFailpoint: Failpoint = () => undefined

export const failpointActions = ['kill', 'throw', 'hang'] as const

/** The action at a failpoint, the share of passes it applies to (0 to 1), and how many passes come before it. */
export interface FailpointPlan {
  readonly name: FailpointName
  readonly action: (typeof failpointActions)[number]
  readonly share: number
  readonly passes: number
}

const hangMs = 30_000

export interface FailpointMeans {
  /** A number in [0, 1). */
  random(): number
  /** Ends this process like a power cut. */
  kill(): void
}

export function createFailpoint(plans: readonly FailpointPlan[], { random, kill }: FailpointMeans): Failpoint {
  if (plans.length === 0) return noFailpoint
  const passed = new Map<FailpointName, number>()
  return (name) => {
    const plan = plans.find((each) => each.name === name)
    if (!plan) return undefined
    const before = passed.get(name) ?? 0
    passed.set(name, before + 1)
    if (before < plan.passes || random() >= plan.share) return undefined
    if (plan.action === 'throw') throw new Error(`failpoint ${name}`)
    if (plan.action === 'hang') return Bun.sleep(hangMs)
    kill()
    // Nothing may continue until the signal arrives.
    return new Promise(() => {})
  }
}

/** `before_settle=kill:0.01,after_hold=throw,mid_stream=kill:1:500`; undefined if it is not of this form. */
export function parseFailpoints(text: string): readonly FailpointPlan[] | undefined {
  const plans: FailpointPlan[] = []
  for (const part of text.split(',')) {
    const [, place = '', does = '', share = '1', passes = '0'] =
      /^\s*([a-z_]+)=([a-z]+)(?::([0-9.]+)(?::([0-9]+))?)?\s*$/.exec(part) ?? []
    const name = failpointNames.find((each) => each === place)
    const action = failpointActions.find((each) => each === does)
    if (!name || !action || !(Number(share) >= 0 && Number(share) <= 1)) return undefined
    plans.push({ name, action, share: Number(share), passes: Number(passes) })
  }
  return plans
}
