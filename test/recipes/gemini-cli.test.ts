// Gemini CLI itself completes a task with four tool calls in three turns on a provider of each dialect, and resumes it
// on two: its own bytes and a translation.

import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { type DialectName, openStage, type Stage } from '../conformance/cells.ts'
import { stopAll } from '../parts/gateway.ts'
import {
  answer,
  Desk,
  findGeminiCli,
  geminiCli,
  kept,
  model,
  type Run,
  resultCount,
  resultsIn,
  turnCount,
} from './gemini-cli.ts'
import { documentedRow, renderRow } from './table.ts'

const models: Readonly<Record<DialectName, string>> = {
  /** One that gets its thoughts back as text. */
  chat: 'test/deepseek-v4-pro',
  messages: 'test/claude-sonnet-4-5',
  gemini: 'test/gemini-3.8-flash',
  responses: 'test/responses-gpt-5.6',
}

const found = await findGeminiCli()
const name = `${geminiCli.name} ${geminiCli.version}`

if ('reason' in found) test.skip(`${name}: ${found.reason}`, () => {})
else {
  describe.each(Object.keys(models) as DialectName[])(`${name} on %s`, (dialect) => {
    let stage: Stage
    let desk: Desk
    let task: Run
    beforeAll(async () => {
      stage = await openStage(model)
      desk = new Desk(found.program, stage)
      await desk.connect(models[dialect])
      task = await desk.run('-p', 'Change the answer in note.txt to 43.')
    })
    afterAll(() => stopAll(desk, stage))

    test('reads two files at once, edits one, runs a command and answers', () => {
      expect(`${task.exitCode} ${task.printed}`).toStartWith('0 {')
      expect(task.result.response).toBe(answer)
      expect(task.result.stats).toMatchObject({ tools: { totalCalls: resultCount, totalSuccess: resultCount } })
      expect(desk.note).toBe('the answer is 43')
    })

    test('each turn is one call, which brings the results so far', () => {
      expect(task.calls.map(resultsIn)).toEqual([0, 2, 3, 4])
      const last = JSON.stringify(task.calls.at(-1)?.json())
      for (const text of ['the answer is 42', 'all quiet', 'the answer is 43']) expect(last).toContain(text)
    })

    test('the provider gets its reasoning back with each turn', () => {
      const last = JSON.stringify(task.calls.at(-1)?.json())
      for (let turn = 0; turn < turnCount - 1; turn += 1) expect(last).toContain(kept[dialect](turn))
    })

    test('each turn is charged once', () => {
      // 10 tokens in and 5 out, at $1 and $2 per million.
      const charged = task.records.map(({ status, model: id, cost }) => [status, id, cost])
      expect(charged).toEqual(Array.from({ length: turnCount }, () => [200, models[dialect], '0.00002']))
    })

    if (dialect !== 'gemini' && dialect !== 'messages') return
    test('resumes the session with all that was said', async () => {
      const resumed = await desk.run('--resume', 'latest', '-p', 'What is it now?')
      expect(`${resumed.exitCode} ${resumed.printed}`).toStartWith('0 {')
      expect(resumed.result.response).toBe(answer)
      // It repeats each result. Gemini gets its bytes; the other APIs take a result once.
      expect(resumed.calls.map(resultsIn)).toEqual([dialect === 'gemini' ? 2 * resultCount : resultCount])
      const sent = JSON.stringify(resumed.calls[0]?.json())
      for (const text of ['Change the answer', answer, 'What is it now?']) expect(sent).toContain(text)
    })
  })
}

test('the recipe is in the documentation', () => {
  expect(documentedRow(geminiCli, 'gemini')).toBe(renderRow(geminiCli, 'gemini', () => true))
})
