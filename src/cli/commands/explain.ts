// `tollgate explain`: one charge taken apart. A sum that does not hold ends with an exit code of its own accord.

import { type CommandDefinition, printJson } from '../command.ts'
import { explainText } from '../explain-text.ts'
import { exitCodes, orListedBy, Refusal } from '../refusal.ts'

export const explainCommand: CommandDefinition = {
  words: ['explain'],
  summary: 'explains what one request cost, to the nano-dollar',
  details: 'The id is in the headers x-request-id of every answer, in the log and in `tollgate requests`.',
  positionals: [{ name: 'REQUEST_ID', prefix: 'req_' }],
  examples: ['tollgate explain req_…', 'tollgate explain req_… --json'],
  async run(context, input) {
    const path = `/api/requests/${encodeURIComponent(input.positionals[0] ?? '')}`
    const request = orListedBy(await context.api.call({ path }), 'tollgate requests')
    if (request instanceof Refusal) return request
    const { text, fault } = explainText(request)
    if (context.json) printJson(context, request)
    else context.terminal.print(text)
    if (fault === undefined) return undefined
    return new Refusal(exitCodes.failed, `this charge does not add up: ${fault}.`, 'tollgate ledger verify')
  },
}
