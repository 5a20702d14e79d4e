// Role: asks for a list. The server limits the bytes of an answer, so if the list is too long, this asks for fewer.
import * as api from './api.js';
import { ApiError } from './api.js';

// The answer, and `limit`: for how many it asked at last.
export async function callForFewer(method, request, limit) {
  for (let asked = limit; ; asked = Math.max(1, Math.floor(asked / 2))) {
    try {
      return { answer: await api.call(method, { ...request, limit: asked }), limit: asked };
    } catch (error) {
      if (!(error instanceof ApiError) || error.kind !== 'too_large') throw error;
      if (asked === 1) throw tooLarge(error);
    }
  }
}

function tooLarge({ details }) {
  const size = details.actual && details.limit ? `: it has ${details.actual}, and the limit is ${details.limit}` : '';
  return new ApiError('refused', `The next entry alone is too large for this page${size}.`, details);
}
