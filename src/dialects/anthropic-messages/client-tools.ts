// Tools that a Messages caller runs itself but describes by a dated type alone, because Claude was trained on them. To
// any other model they are functions with the schema below. Sources: the parameter lists in Anthropic's docs (bash
// tool, text editor tool, memory tool) and the command types of @anthropic-ai/sdk 1.8.0, read 2026-11-15. To add one:
// the type, its usual name, one sentence, and the parameters the docs list, `required` only where every command needs it.

import type { RawJson } from '../canonical/conversation.ts'

export interface ClientTool {
  readonly name: string
  readonly description: string
  readonly schema: RawJson
}

const path = { type: 'string', description: 'Path of the file or directory.' }
const viewRange = {
  type: 'array',
  items: { type: 'integer' },
  description: 'For view: first and last line, counted from 1; -1 as the last means to the end of the file.',
}
const edits = {
  file_text: { type: 'string', description: 'For create: the content of the new file.' },
  old_str: { type: 'string', description: 'For str_replace: the text to replace; it must match exactly one place.' },
  insert_line: { type: 'integer', description: 'For insert: the line after which to insert; 0 is the beginning.' },
}

const bash: ClientTool = {
  name: 'bash',
  description: 'Runs a command in a bash shell that keeps its state between calls.',
  schema: JSON.stringify({
    type: 'object',
    properties: {
      command: { type: 'string', description: 'The command to run. Not needed with restart.' },
      restart: { type: 'boolean', description: 'true restarts the shell.' },
    },
  }),
}

/** Up to 2025-01-24: insert takes its text as new_str, and the last edit can be undone. */
const undoingEditor: ClientTool = {
  name: 'str_replace_editor',
  description: 'Views, creates and edits text files.',
  schema: JSON.stringify({
    type: 'object',
    properties: {
      command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'undo_edit'] },
      path,
      view_range: viewRange,
      ...edits,
      new_str: { type: 'string', description: 'For str_replace and insert: the new text.' },
    },
    required: ['command', 'path'],
  }),
}

const editor: ClientTool = {
  name: 'str_replace_based_edit_tool',
  description: 'Views, creates and edits text files.',
  schema: JSON.stringify({
    type: 'object',
    properties: {
      command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert'] },
      path,
      view_range: viewRange,
      ...edits,
      new_str: { type: 'string', description: 'For str_replace: the new text.' },
      insert_text: { type: 'string', description: 'For insert: the text to insert.' },
    },
    required: ['command', 'path'],
  }),
}

const memory: ClientTool = {
  name: 'memory',
  description: 'Keeps notes in files under /memories that last beyond this conversation.',
  schema: JSON.stringify({
    type: 'object',
    properties: {
      command: { type: 'string', enum: ['view', 'create', 'str_replace', 'insert', 'delete', 'rename'] },
      path: { ...path, description: 'Path under /memories; not for rename.' },
      view_range: viewRange,
      ...edits,
      new_str: { type: 'string', description: 'For str_replace: the new text.' },
      insert_text: { type: 'string', description: 'For insert: the text to insert.' },
      old_path: { type: 'string', description: 'For rename: the present path.' },
      new_path: { type: 'string', description: 'For rename: the new path.' },
    },
    required: ['command'],
  }),
}

export const clientTools: ReadonlyMap<string, ClientTool> = new Map([
  ['bash_20241022', bash],
  ['bash_20250124', bash],
  ['text_editor_20241022', undoingEditor],
  ['text_editor_20250124', undoingEditor],
  ['text_editor_20250429', editor],
  ['text_editor_20250728', editor],
  ['memory_20250818', memory],
])
