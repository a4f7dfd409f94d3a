// Refuses what OpenAI refuses, in its words and naming the field, so that a caller's mistake shows up before it costs
// money elsewhere. Fields it does not know are let pass.

import { isObject, type JsonObject, listMember, member, textMember } from '../json-value.ts'
import { invalid, type Refusal } from '../refusal.ts'
import { checkMessages } from './check-messages.ts'
import { missing, unknownValue, wrongType } from './field-refusals.ts'

const namePattern = /^[a-zA-Z0-9_-]{1,64}$/
const stopSequencesMax = 4

export function checkRequest(body: JsonObject): Refusal | undefined {
  const model = member(body, 'model')
  if (model === undefined) return invalid('you must provide a model parameter', { param: 'model' })
  if (typeof model !== 'string') return wrongType('model', 'a string', model)
  return checkMessages(body) ?? checkOutput(body) ?? checkStream(body) ?? checkTools(body) ?? checkToolChoice(body)
}

function checkOutput(body: JsonObject): Refusal | undefined {
  for (const param of ['max_tokens', 'max_completion_tokens']) {
    const cap = member(body, param) ?? undefined
    if (cap === undefined) continue
    if (typeof cap !== 'number' || !Number.isInteger(cap)) return wrongType(param, 'an integer', cap)
    if (cap < 1) {
      const message = `Invalid '${param}': integer below minimum value. Expected a value >= 1, but got ${cap} instead.`
      return invalid(message, { param, code: 'integer_below_min_value' })
    }
  }
  const stop = member(body, 'stop') ?? undefined
  const isStop = typeof stop === 'string' || (Array.isArray(stop) && stop.every((item) => typeof item === 'string'))
  if (stop !== undefined && !isStop) return wrongType('stop', 'one of a string or array of strings', stop)
  if (Array.isArray(stop) && stop.length > stopSequencesMax) {
    const message = `Invalid 'stop': array too long. Expected an array with maximum length ${stopSequencesMax}, but got an array with length ${stop.length} instead.`
    return invalid(message, { param: 'stop', code: 'array_above_max_length' })
  }
  const choices = member(body, 'n') ?? 1
  if (choices !== 1) {
    return invalid("Unsupported value: 'n' must be 1 in the sandbox.", { param: 'n', code: 'unsupported_value' })
  }
  return undefined
}

function checkStream(body: JsonObject): Refusal | undefined {
  const stream = member(body, 'stream') ?? false
  if (typeof stream !== 'boolean') return wrongType('stream', 'a boolean', stream)
  const options = member(body, 'stream_options') ?? undefined
  if (options === undefined) return undefined
  if (!isObject(options)) return wrongType('stream_options', 'an object', options)
  if (stream) return undefined
  return invalid("The 'stream_options' parameter is only allowed when 'stream' is enabled.", {
    param: 'stream_options',
  })
}

function checkTools(body: JsonObject): Refusal | undefined {
  if ((member(body, 'functions') ?? undefined) !== undefined) {
    const message = "Unsupported parameter: 'functions' is deprecated and unknown to the sandbox. Use 'tools' instead."
    return invalid(message, { param: 'functions', code: 'unsupported_parameter' })
  }
  const tools = member(body, 'tools') ?? []
  if (!Array.isArray(tools)) return wrongType('tools', 'an array of objects', tools)
  for (const [index, tool] of tools.entries()) {
    const param = `tools[${index}]`
    const type = member(tool, 'type')
    if (type !== 'function' && type !== 'custom') {
      return unknownValue(`${param}.type`, type, ['function', 'custom'])
    }
    const name = member(member(tool, type), 'name')
    if (name === undefined) return missing(`${param}.${type}.name`)
    if (typeof name !== 'string' || !namePattern.test(name)) {
      const message = `Invalid '${param}.${type}.name': expected a string of up to 64 letters, digits, underscores and dashes.`
      return invalid(message, { param: `${param}.${type}.name`, code: 'invalid_value' })
    }
  }
  return undefined
}

function checkToolChoice(body: JsonObject): Refusal | undefined {
  const choice = member(body, 'tool_choice') ?? 'auto'
  if (choice === 'auto' || choice === 'none') return undefined
  const tools = listMember(body, 'tools')
  if (tools.length === 0) {
    const message = "Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified."
    return invalid(message, { param: 'tool_choice' })
  }
  if (choice === 'required') return undefined
  const type = member(choice, 'type')
  if (type === 'allowed_tools') return undefined
  if (type !== 'function' && type !== 'custom') {
    const message = "Invalid value for 'tool_choice': expected 'none', 'auto', 'required' or an object naming a tool."
    return invalid(message, { param: 'tool_choice', code: 'invalid_value' })
  }
  const name = textMember(member(choice, type), 'name') ?? null
  if (tools.some((tool) => member(member(tool, type), 'name') === name)) return undefined
  const message = `Invalid value for 'tool_choice': no ${type} named '${name}' was specified in the 'tools' parameter.`
  return invalid(message, { param: 'tool_choice' })
}
