"""What models and their use look like in JSON."""

from typing import Any, ClassVar

from rest_framework import serializers

from apps.models.models import Kind, ModelConfig
from apps.models.providers import CHOICES
from apps.rest.fields import JsonObject
from apps.workspaces.api.shapes import InWorkspace


class ModelOut(serializers.ModelSerializer[ModelConfig]):
    """A model. Its key is never shown; its address and settings only to those who may change it."""

    has_key = serializers.SerializerMethodField()
    base_url = serializers.SerializerMethodField()
    configuration = serializers.SerializerMethodField()
    editable = serializers.BooleanField(help_text="Whether you may change it. The operator's models you may not.")

    class Meta:
        model = ModelConfig
        fields: ClassVar = [
            "id", "workspace", "kind", "provider", "name", "base_url", "has_key", "configuration", "is_default",
            "is_fast", "enabled", "restricted", "fallback", "created_at", "editable",
        ]  # fmt: skip
        read_only_fields = fields

    def get_has_key(self, model: Any) -> bool:
        """Return whether a key is stored."""
        return model.api_key is not None

    def get_base_url(self, model: Any) -> str | None:
        """Return the address, to those who may change it."""
        return str(model.base_url) if model.editable else None

    def get_configuration(self, model: Any) -> dict[str, Any] | None:
        """Return limits, prices and abilities, to those who may change them."""
        return model.configuration if model.editable else None


class ModelIn(InWorkspace):
    """A new model. Without an address it is the vendor's."""

    kind = serializers.ChoiceField(choices=Kind.choices)
    provider = serializers.ChoiceField(choices=CHOICES, required=False)
    name = serializers.CharField(max_length=200, help_text="As the endpoint knows it.")
    base_url = serializers.URLField(max_length=500, required=False, allow_blank=True)
    api_key = serializers.CharField(max_length=500, required=False, allow_blank=True, write_only=True)
    configuration = JsonObject(required=False)
    is_default = serializers.BooleanField(required=False)


class ModelChange(serializers.Serializer[Any]):
    """What changes. A key that is left out, empty or masked stays; a new address wants it again."""

    name = serializers.CharField(max_length=200, required=False)
    base_url = serializers.URLField(max_length=500, required=False)
    api_key = serializers.CharField(max_length=500, required=False, allow_blank=True, write_only=True)
    configuration = JsonObject(required=False)
    is_default = serializers.BooleanField(required=False)
    is_fast = serializers.BooleanField(required=False, help_text="The fast chat model beside the default.")
    enabled = serializers.BooleanField(required=False)
    restricted = serializers.BooleanField(required=False, help_text="Only for people whom it is shared with.")


class TrialOut(serializers.Serializer[Any]):
    """What came out when a model was called."""

    ok = serializers.BooleanField()
    ms = serializers.IntegerField()
    first_token_ms = serializers.IntegerField(allow_null=True)
    capabilities = serializers.ListField(child=serializers.CharField())
    dimensions = serializers.IntegerField(help_text="Of an embedding model's vectors; 0 for others.")
    error = serializers.CharField(help_text="Empty where it works.")
    code = serializers.CharField()


class UsageQuery(InWorkspace):
    """Of which time."""

    days = serializers.IntegerField(min_value=1, max_value=366, default=30)


class UsageOfModel(serializers.Serializer[Any]):
    """What one model did."""

    model = serializers.CharField()
    kind = serializers.CharField()
    currency = serializers.CharField()
    calls = serializers.IntegerField()
    failed = serializers.IntegerField()
    tokens_in = serializers.IntegerField()
    tokens_out = serializers.IntegerField()
    tokens_cached = serializers.IntegerField()
    cost = serializers.DecimalField(max_digits=18, decimal_places=9, allow_null=True)
    unpriced = serializers.IntegerField(help_text="Calls without a known price.")


class UsageOfDay(serializers.Serializer[Any]):
    """What one day cost."""

    day = serializers.DateField()
    calls = serializers.IntegerField()
    tokens = serializers.IntegerField()


class UsageOut(serializers.Serializer[Any]):
    """What a workspace used."""

    since = serializers.DateTimeField()
    models = UsageOfModel(many=True)
    days = UsageOfDay(many=True)
