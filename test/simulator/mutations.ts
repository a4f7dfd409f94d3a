// Deliberate mistakes, each of which the simulator must catch within a few hundred seeds. A new one is a row: the text it replaces
// must stand in the file exactly once, and the engine is the one whose code it is in.

import type { Plan } from './plan.ts'

export interface Edit {
  /** Under src. */
  readonly file: string
  readonly from: string | RegExp
  readonly to: string
}

export interface Mutation {
  readonly name: string
  readonly engine: 'embedded' | 'shared'
  readonly edits: readonly Edit[]
  /** Whether the mistake can show in the world of a seed, if that is rare. */
  mayShow?(plan: Plan): boolean
  /** The mistake is in the disk and not in the code. */
  readonly acknowledgesEarly?: boolean
}

export const mutations: readonly Mutation[] = [
  {
    name: 'credit that was granted is in the books and not in the wallet in memory',
    engine: 'embedded',
    mayShow: ({ credit }) => credit > 0n,
    edits: [
      {
        file: 'ledger/embedded/embedded-ledger.ts',
        from: /book\.credit\(workspaceId, renewed\.granted\)/,
        to: 'void renewed',
      },
    ],
  },
  {
    name: 'credit that has expired stays',
    engine: 'embedded',
    mayShow: ({ credit }) => credit > 0n,
    edits: [
      {
        file: 'ledger/plans.ts',
        from: /await expireCredit\(sql, workspaceId, terms\)/,
        to: 'zeroNano',
      },
    ],
  },
  {
    name: 'settling twice is not one settlement',
    engine: 'embedded',
    edits: [
      {
        file: 'ledger/embedded/embedded-ledger.ts',
        from: /const first = book\.settling\(requestId\)/,
        to: 'const first = undefined as Promise<SettleOutcome> | undefined',
      },
    ],
  },
  {
    name: 'a hold looks at a balance without the other holds',
    engine: 'embedded',
    edits: [
      {
        file: 'ledger/embedded/embedded-ledger.ts',
        from: /if \(posted - reserved < needed \+ kept\)/,
        to: 'if (posted < needed + kept)',
      },
    ],
  },
  {
    name: 'a correction sets aside nothing of what it takes',
    engine: 'embedded',
    // Others must want what is taken.
    mayShow: ({ actors, wallets, funds }) =>
      wallets === 1 && funds < 6_000n && actors.filter((kind) => kind === 'correct').length > 1,
    edits: [
      {
        file: 'ledger/embedded/embedded-ledger.ts',
        from: /if \('kind' in set\) return set\n\s+claim = set/,
        to: "if ('kind' in set) return set\n    book.drop(set)",
      },
      {
        file: 'ledger/embedded/embedded-ledger.ts',
        from: /else if \(isMade\) book\.credit\(correction\.workspaceId, correction\.amount\)/,
        to: "else if (isMade) book.credit(correction.workspaceId, (correction.direction === 'add' ? correction.amount : -correction.amount) as never)",
      },
    ],
  },
  {
    name: 'the reaper releases holds whose time is not over',
    engine: 'embedded',
    edits: [
      { file: 'ledger/embedded/embedded-ledger.ts', from: /expiresAtMs > nowMs\b/, to: 'expiresAtMs > nowMs + 20_000' },
    ],
  },
  { name: 'a commit is acknowledged before it is written', engine: 'embedded', edits: [], acknowledgesEarly: true },
  {
    name: 'an extension is granted and not counted',
    engine: 'embedded',
    edits: [
      {
        file: 'ledger/embedded/embedded-ledger.ts',
        from: /return hold && this\.#reserve\(hold, more\)/,
        to: "return hold && { kind: 'held' }",
      },
    ],
  },
  {
    name: 'a charge is rounded down',
    engine: 'embedded',
    edits: [{ file: 'kernel/money.ts', from: /\(pico \+ 999n\) \/ 1000n/, to: 'pico / 1000n' }],
  },
  {
    name: 'a repeated top-up is made again',
    engine: 'embedded',
    edits: [
      {
        file: 'ledger/fund.ts',
        from: /const earlier = await claim\(sql, key, now\)/,
        to: 'const earlier = undefined as Awaited<ReturnType<typeof claim>>',
      },
    ],
  },
  {
    name: 'what the wallet could not pay is not written off',
    engine: 'embedded',
    edits: [
      {
        file: 'ledger/settlement.ts',
        from: /const writtenOff = \(settlement\.cost - charge\)/,
        to: 'const writtenOff = (0n)',
      },
    ],
  },
  {
    name: 'a hold that ends does not leave its budgets',
    engine: 'embedded',
    edits: [
      {
        file: 'ledger/embedded/embedded-ledger.ts',
        from: /this\.budgets\.free\(budgetNames, amount\)/,
        to: '',
      },
    ],
  },
  {
    name: 'a commit that takes too long is reported as failed',
    engine: 'embedded',
    edits: [
      {
        file: 'ledger/embedded/embedded-ledger.ts',
        from: /this\.#resolveUnknown\(entry\)/,
        to: '{ this.#giveUp([entry]); entry.resolveLate = () => {} }',
      },
    ],
  },
  {
    name: 'a commit that could not be synced is reported as not written',
    engine: 'embedded',
    // It takes an outage in which a settlement is given up, and a crash before its end.
    mayShow: ({ troubles }) => troubles.some(({ kind, lastsMs }) => kind === 'outage' && lastsMs > 40_000),
    edits: [
      { file: 'ledger/embedded/embedded-ledger.ts', from: /if \(mayBeWritten\(thrown\)\)/, to: 'if (thrown === 0)' },
    ],
  },
  {
    name: 'the reaper takes a replica for dead between two heartbeats',
    engine: 'shared',
    edits: [{ file: 'ledger/shared/replica.ts', from: /silenceOfDeathMs = 20_000n/, to: 'silenceOfDeathMs = 2_000n' }],
  },
  {
    name: 'the reaper ends a hold and keeps its money',
    engine: 'shared',
    edits: [
      { file: 'ledger/shared/holds.ts', from: /SET held = held - (?=\$\{amount\})/, to: 'SET held = held - 0 * ' },
    ],
  },
]
