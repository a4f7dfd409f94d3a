// `npm run conformance`: runs the checks against any endpoint and reports the results.

import { chatProbe } from './chat-probe.ts'
import { answered, failed } from './check-result.ts'
import { checks } from './checks.ts'
import { Endpoint, isAnswered } from './endpoint.ts'
import { messagesProbe } from './messages-probe.ts'
import { type ConformanceOptions, conformanceHelp, readConformanceOptions } from './options.ts'
import type { Probe } from './probe.ts'
import { type DialectReport, isConformant, jsonReport, type NamedResult, type Report, textReport } from './report.ts'
import { isReply, Session } from './session.ts'
import { listOf, membersOf } from './violation.ts'

const probes: readonly Probe[] = [chatProbe, messagesProbe]

export interface ConformanceOutput {
  /** The report. */
  print(text: string): void
  /** Prints an error instead of a result. */
  complain(text: string): void
}

/** Answers with the exit code. */
export async function runConformance(options: ConformanceOptions, output: ConformanceOutput): Promise<number> {
  const chosen = probes.filter(({ name }) => options.dialect === undefined || options.dialect === name)
  const model = options.model ?? (await onlyModel(options, chosen))
  if (typeof model !== 'string') {
    output.complain(`conformance: ${model.fault}\n`)
    return 2
  }
  const dialects: DialectReport[] = []
  for (const probe of chosen) dialects.push(await checkDialect(probe, options, model))
  const report: Report = { baseUrl: options.baseUrl, model, dialects }
  output.print(options.json ? jsonReport(report) : textReport(report))
  return isConformant(report) ? 0 : 1
}

async function checkDialect(probe: Probe, options: ConformanceOptions, model: string): Promise<DialectReport> {
  const { name: dialect, title } = probe
  const session = new Session(probe, new Endpoint(options, probe), model)
  const first = await session.ask('text', { stream: false })
  if (!isReply(first)) {
    const isMissing = first.status === 404 || first.status === 405 || first.status === 501
    // Asked for by name, its absence is a failure like any other.
    if (options.dialect === undefined && isMissing)
      return { dialect, title, unserved: first.faults.join('; '), results: [] }
    // Without any answer, everything would fail for one reason.
    if (!isReply(await session.ask('text', { stream: true }))) {
      const results = [{ name: 'first request', ...failed(...first.faults, 'nothing else was checked') }]
      return { dialect, title, unserved: undefined, results }
    }
  }
  const results: NamedResult[] = []
  for (const { name, run } of checks) results.push({ name, ...(await run(session)) })
  return { dialect, title, unserved: undefined, results }
}

const shownMax = 12

/** The model of an endpoint that has just one. */
async function onlyModel(options: ConformanceOptions, chosen: readonly Probe[]): Promise<string | { fault: string }> {
  let reason = ''
  for (const probe of chosen) {
    const result = await new Endpoint(options, probe).models()
    const list = isAnswered(result) && result.status === 200 ? listOf(membersOf(result.json).data) : []
    const ids = list.flatMap((item) => {
      const { id } = membersOf(item)
      return typeof id === 'string' ? [id] : []
    })
    if (ids.length === 1 && ids[0] !== undefined) return ids[0]
    if (ids.length > 1) {
      const shown = ids.slice(0, shownMax).map((id) => `\n  ${id}`)
      const more = ids.length > shownMax ? `\n  … and ${ids.length - shownMax} more` : ''
      return { fault: `say which model to ask, with --model; it should have tools. There are:${shown.join('')}${more}` }
    }
    reason ||= isAnswered(result) ? answered(result) : result.unanswered
  }
  return { fault: `the models cannot be listed (${reason}); say which one to ask, with --model` }
}

if (import.meta.main) {
  const args = process.argv.slice(2)
  const options = readConformanceOptions(args)
  const output: ConformanceOutput = {
    print: (text) => void process.stdout.write(text),
    complain: (text) => void process.stderr.write(text),
  }
  if (args.includes('--help') || args.includes('-h')) {
    output.print(conformanceHelp)
  } else if ('fault' in options) {
    output.complain(`conformance: ${options.fault}.\nTry: npm run conformance -- --help\n`)
    process.exitCode = 2
  } else {
    process.exitCode = await runConformance(options, output)
  }
}
