"""Addresses that other tools expect, without a slash at the end."""

from django.urls import path

from apps.interop import chat_completions

app_name = "openai"
urlpatterns = [
    path("models", chat_completions.Models.as_view(), name="models"),
    path("models/<path:model>", chat_completions.OneModel.as_view(), name="model"),
    path("chat/completions", chat_completions.ChatCompletions.as_view(), name="chat-completions"),
]
