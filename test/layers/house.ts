// The layers as data: which folder may import which, and what may be written in one place only. The rules
// in rules.ts read these tables and know no folder by name.

/** From the top. A folder imports from groups below its own or from itself, never from a sibling in its group. */
export const layers: readonly (readonly string[])[] = [
  ['main'],
  ['app'],
  ['config'],
  ['http', 'web', 'cli'],
  ['api'],
  ['batches'],
  ['pipeline'],
  ['routing', 'alerts', 'reconcile'],
  ['providers'],
  ['dialects', 'catalog', 'ledger', 'limits', 'tenancy', 'telemetry'],
  ['wire', 'store'],
  ['kernel'],
]

/** The files directly in src/, by their layer. */
export const topFiles: readonly { readonly pattern: RegExp; readonly part: string }[] = [
  { pattern: /^(main|serve)\.ts$/, part: 'main' },
  { pattern: /^app\.ts$/, part: 'app' },
]

/** Folders in src/dialects/ that are no dialect: what all of them share. */
export const dialectCommons: readonly string[] = ['canonical', 'request', 'reply', 'byte-lane']

/** Imports against the order that were agreed on. */
export const exceptions: readonly { readonly from: string; readonly to: string; readonly reason: string }[] = [
  { from: 'cli', to: 'config', reason: 'commands find the gateway and explain its settings from the same Config' },
]

/** Parts that may import less than their place in the order would allow; their own files are always open to them. */
export const narrowed: readonly {
  readonly from: string
  readonly only: RegExp
  readonly replacement: string
}[] = [
  {
    from: 'config',
    only: /^src\/(kernel\/|catalog\/(entry|model)\.ts$|providers\/entry\.ts$)/,
    replacement:
      'Config imports catalog/entry.ts, catalog/model.ts, providers/entry.ts and kernel only; build the rest in app.ts',
  },
  {
    from: 'api',
    only: /^src\/(kernel\/|catalog\/entry\.ts$|dialects\/surface\.ts$)/,
    replacement:
      'The API is data: it imports kernel, catalog/entry.ts (prices) and dialects/surface.ts (names); handlers are in src/http',
  },
  {
    from: 'ledger',
    only: /^src\/(?!kernel\/usage\.ts$)/,
    replacement: 'The ledger knows amounts, not tokens; price the usage first and hand it a Nano',
  },
]

export interface Ban {
  /** Said of the file: `reads the clock`. */
  readonly what: string
  /** Matched against code without comments, strings and regular expressions. */
  readonly code: RegExp
  /** Matched against `module` and `module#name` of every import. */
  readonly imports?: RegExp
  /** Files in which it is written on purpose. */
  readonly allowed?: RegExp
  readonly replacement: string
}

export const bans: readonly Ban[] = [
  {
    what: 'reads the environment',
    code: /\b(?:process|Bun|import\.meta)\s*(?:\?\.|\.)\s*env\b|\benv\b[^{}]*\}\s*=\s*(?:process|Bun)\b/g,
    imports: /^(?:node:)?process$|^bun#env$/,
    allowed: /^src\/config\/config\.ts$/,
    replacement: 'Use a field of Config (config/config.ts reads the environment)',
  },
  {
    what: 'reads the clock',
    code: /\bDate\s*\.\s*now\b|\bnew\s+Date\b(?!\s*\(\s*[^\s)])|\bperformance\s*\.\s*now\b|\bBun\s*\.\s*nanoseconds\b|\bprocess\s*\.\s*hrtime\b/g,
    imports: /^(?:node:)?perf_hooks$|^bun#nanoseconds$/,
    allowed: /^src\/kernel\/clock\.ts$/,
    replacement: 'Use kernel/clock (Clock)',
  },
  {
    what: 'starts another program',
    code: /\bBun\s*\.\s*(?:spawn\b|spawnSync\b|\$)/g,
    imports: /^(?:node:)?child_process$|^bun#(?:spawn|spawnSync|\$)$/,
    allowed: /^src\/cli\/supervise\.ts$/,
    replacement: 'The gateway is one process; use a Bun API or a Worker',
  },
  {
    what: 'runs code made from text',
    code: /(?<![.\w$])eval\s*\(|\bnew\s+Function\b/g,
    imports: /^(?:node:)?vm$/,
    replacement: 'Use a table of functions',
  },
  {
    what: 'draws at random',
    code: /\bMath\s*\.\s*random\b/g,
    allowed: /^src\/kernel\//,
    replacement: 'Take a random source as an argument; only kernel makes one',
  },
]

/** Files that may name a provider, with the reason. */
export const providerNamesAllowed: ReadonlyMap<string, string> = new Map([
  [
    'src/cli/connect-clients.ts',
    'in the settings of other programs, `openai` is their word for the Chat Completions API',
  ],
  ['src/kernel/bill.ts', 'the forms of bills are named after who writes them'],
  ['src/config/bill-entry.ts', 'says whose form of bills each word is'],
  ['src/reconcile/anthropic.ts', 'reads the reports of one provider, which are its own form'],
  ['src/reconcile/openai.ts', 'reads the reports of one provider, which are its own form'],
  ['src/reconcile/openrouter.ts', 'reads the reports of one provider, which are its own form'],
  ['src/reconcile/run.ts', 'a table of the forms of bills and what reads them'],
  ['src/reconcile/fetch-pages.ts', 'a limit of one provider'],
  ['src/config/settings.ts', 'names a cloud that gives identities'],
  ['src/providers/cloud-identities.ts', 'names the clouds that give identities'],
  ['src/providers/provider.ts', 'names the clouds that give identities'],
  ['src/cli/import/litellm.ts', "a table of another gateway's names for providers"],
  ['src/cli/import/openrouter.ts', 'reads the ids of one provider, which are its own format'],
  ['src/cli/commands/import.ts', 'a command is named after what it reads'],
])
